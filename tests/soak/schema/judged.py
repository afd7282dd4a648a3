"""Configure an unfamiliar schema as ``check`` demands."""

import json
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.e2e.installation import Installation
from tests.soak.schema.facts import Database, Table

_RELATIONS: Final = """
SELECT format('%s.%s', n.nspname, c.relname) FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_'
   AND n.nspname NOT IN ('information_schema', 'wal2lake') ORDER BY 1"""

Finding = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Holds the outcome of ``check`` for a schema."""

    captured: tuple[str, ...]
    refused: dict[str, str]
    """The refused tables, views and columns, with reasons."""
    given_identity: tuple[str, ...]
    """Tables without a key, which were given REPLICA IDENTITY FULL."""


def judge(installation: Installation, database: Database) -> Judged:
    """Name every table in the configuration except those that ``check`` refuses."""
    configure(
        installation, [f"{schema}.*" for schema in sorted({t.schema for t in database.tables})]
    )
    given = _give_identities(installation, database)
    findings = _check(installation)
    named = {finding["subject"]: finding["message"] for finding in findings if _refuses(finding)}
    errors = [finding["subject"] for finding in findings if finding["level"] == "error"]
    captured = [t.plain for t in database.tables if not t.partitioned and not _has_error(t, errors)]
    configure(installation, captured)
    left = [finding for finding in _check(installation) if finding["level"] == "error"]
    assert left == [], "check still finds errors without the tables that it refused"
    unnamed = _relations(installation) - set(captured) - set(named)
    assert unnamed == set(), "not captured, and check does not say so"
    return Judged(captured=tuple(captured), refused=named, given_identity=given)


def _refuses(finding: Finding) -> bool:
    return finding["level"] != "ok" and "." in finding["subject"]


def _has_error(table: Table, errors: list[str]) -> bool:
    """Return whether an error names the table or one of its columns."""
    return any(error == table.plain or error.startswith(f"{table.plain}.") for error in errors)


def _give_identities(installation: Installation, database: Database) -> tuple[str, ...]:
    keyless = [t for t in database.tables if not t.key and not t.partitioned]
    for table in keyless:
        installation.execute(f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL")
    return tuple(table.plain for table in keyless)


def _relations(installation: Installation) -> set[str]:
    with installation.connect() as connection:
        return {name for (name,) in connection.execute(_RELATIONS.encode())}


def configure(installation: Installation, tables: list[str]) -> None:
    """Configure exactly these tables."""
    path = installation.folder / "wal2lake.yaml"
    written: dict[str, Any] = yaml.safe_load(path.read_text())
    written["source"] |= {"tables": tables, "append_only": []}
    path.write_text(yaml.safe_dump(written))


def _check(installation: Installation) -> list[Finding]:
    printed = installation.done("check", "--json").stdout
    findings: list[Finding] = json.loads(printed[printed.index("[") : printed.rindex("]") + 1])
    return findings
