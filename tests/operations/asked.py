"""Commands that ask the job for an operation, and what they print."""

import json
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

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


def swept(installation: Installation, which: str) -> dict[str, int]:
    """By table, where there were some, in the operations ``which`` selects; read by delta-rs."""
    table = DeltaTable(str(installation.folder / "lake" / "_wal2lake" / "operations"))
    query = f"SELECT results FROM t {which}"
    found = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    results = [row for operation in found.to_pylist() for row in operation["results"]]
    return {row["table"]: row["swept"] for row in results if row["swept"]}
