"""Strikes out in pairs the rows that were removed from a table and added to it again."""

from collections.abc import Sequence
from typing import Final

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.derive.engine.numbered import keep_numbered
from cdc.events.values.sql_text import postgres_name
from cdc.lake.changed.changed_rows import ChangedRows

_DIGEST: Final = "_cdc_digest"
_NUMBER: Final = "_cdc_number"
_MARKS: Final = f"{_DIGEST}, {_NUMBER}"
_MARKED: Final = "wal2lake_marked_removed", "wal2lake_marked_added"


def keep_net(database: Calculator, found: ChangedRows, removed: str, added: str) -> None:
    """Create the tables ``removed`` and ``added`` of the rows that are in one of the two only."""
    for name, rows in ((removed, found.removed), (added, found.added)):
        database.keep(name, rows)
    if _have_equal_rows(database, removed, added, found.removed.schema.names):
        _strike(database, removed, added)


def _have_equal_rows(
    database: Calculator, removed: str, added: str, columns: Sequence[str]
) -> bool:
    """Return whether the engine takes a row of one for a row of the other.

    Most changes have none, and to see that costs a quarter of striking them out.
    """
    equal = (f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in map(postgres_name, columns))
    pairs = f"{removed} AS a SEMI JOIN {added} AS b ON {' AND '.join(equal)}"
    return bool(database.values(f"SELECT 1 FROM {pairs} LIMIT 1"))  # noqa: S608 - our names


def _strike(database: Calculator, removed: str, added: str) -> None:
    """Let digests decide: values that are equal may print differently, as 0 and -0 do.

    A set operation of the engine would make them one.
    """
    for name, rows in zip(_MARKED, (removed, added), strict=True):
        _keep_marked(database, name, rows)
    for name, rows, others in ((removed, *_MARKED), (added, *reversed(_MARKED))):
        left = f"{rows} ANTI JOIN {others} USING ({_MARKS})"
        database.run(f"DROP TABLE {name}")
        database.run(f"CREATE TABLE {name} AS SELECT * EXCLUDE ({_MARKS}) FROM {left}")  # noqa: S608
    for name in _MARKED:
        database.run(f"DROP TABLE {name}")


def _keep_marked(database: Calculator, name: str, rows: str) -> None:
    """Create the table ``name`` of rows with their digests, and a number among equal ones."""
    outputs = database.outputs(f"SELECT * FROM {rows}")  # noqa: S608 - our names
    digested = f"SELECT *, {digest(outputs)} AS {_DIGEST} FROM {rows}"  # noqa: S608
    keep_numbered(database, name, digested, _DIGEST, _NUMBER)
