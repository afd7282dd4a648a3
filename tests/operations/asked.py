"""Run commands that ask the job for an operation, and parse what they print."""

import json
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.e2e.installation import Installation


def last_line(installation: Installation, *arguments: str) -> dict[str, Any]:
    """Run a command with ``--json``; return its last object, printed when the operation ends."""
    return last_object(installation.run(*arguments, "--json"))


def last_object(printed: str) -> dict[str, Any]:
    """Return the last JSON object among the printed lines."""
    lines = reversed(printed.splitlines())
    found: dict[str, Any] = json.loads(next(line for line in lines if line[:1] == "{"))
    return found


def result(facts: dict[str, Any], table: str) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in facts["results"] if r["table"] == table)
    return found


def swept(installation: Installation, which: str) -> dict[str, int]:
    """Return the numbers of swept rows by table, in operations selected by ``which``."""
    table = DeltaTable(str(installation.folder / "lake" / "_wal2lake" / "operations"))
    query = f"SELECT results FROM t {which}"
    found = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    results = [row for operation in found.to_pylist() for row in operation["results"]]
    return {row["table"]: row["swept"] for row in results if row["swept"]}


def read_by(installation: Installation) -> dict[str, str]:
    """Return who has read each table so far, by the job's log."""
    lines = (installation.state_dir / "logs" / "job.log").read_text().splitlines()
    said = [json.loads(line) for line in lines if '"event": "resnapshot"' in line]
    return {line["table"]: line["by"] for line in said}
