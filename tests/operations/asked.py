"""Commands that ask the job for an operation, and what they print."""

import json
from typing import Any

from tests.e2e.installation import Installation


def last_line(installation: Installation, *arguments: str) -> dict[str, Any]:
    """What a command with --json says when the operation has ended."""
    printed = installation.run(*arguments, "--json").strip().splitlines()
    found: dict[str, Any] = json.loads(next(line for line in reversed(printed) if line[:1] == "{"))
    return found


def result(facts: dict[str, Any], table: str) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in facts["results"] if r["table"] == table)
    return found
