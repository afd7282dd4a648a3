"""Commands that ask the job for an operation, and what they print."""

import json
from typing import Any

from tests.e2e.installation import Installation


def last_line(installation: Installation, *arguments: str) -> dict[str, Any]:
    """What a command with --json says when the operation has ended."""
    return last_object(installation.run(*arguments, "--json"))


def last_object(printed: str) -> dict[str, Any]:
    """Of JSON lines, with others between them."""
    lines = reversed(printed.splitlines())
    found: dict[str, Any] = json.loads(next(line for line in lines if line[:1] == "{"))
    return found


def result(facts: dict[str, Any], table: str) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in facts["results"] if r["table"] == table)
    return found
