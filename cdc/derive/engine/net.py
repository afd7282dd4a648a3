"""Strikes out in pairs the rows that were removed from a table and added to it again."""

from collections.abc import Sequence
from typing import Final

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.events.values.sql_text import postgres_name
from cdc.lake.changed.changed_rows import ChangedRows

_DIGEST: Final = "_cdc_digest"
_NUMBER: Final = "_cdc_number"
_MARKS: Final = f"{_DIGEST}, {_NUMBER}"
_MOST: Final = 0.5
_LEFT: Final = "wal2lake_left_removed", "wal2lake_left_added"


def keep_net(database: Calculator, found: ChangedRows, removed: str, added: str) -> None:
    """Create the tables ``removed`` and ``added`` of the rows that are in one of the two only."""
    sides = removed, added
    for name, rows in zip(sides, (found.removed, found.added), strict=True):
        database.keep(name, rows)
    if _equal_rows(database, *sides, found.removed.schema.names):
        _keep_left(database, sides, _LEFT)
        for name, left in zip(sides, _LEFT, strict=True):
            database.run(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {left}")  # noqa: S608
            database.run(f"DROP TABLE {left}")


def narrow_net(
    database: Calculator,
    columns: Sequence[str],
    sides: tuple[str, str],
    into: tuple[str, str],
    *,
    are_all: bool,
) -> None:
    """Create ``into``, which has these columns of net changes.

    Rows that differ in other columns alone are in neither, if most do: it is as right with them,
    and striking them out has its price. None do if the columns ``are_all``.
    """
    listed = ", ".join(map(postgres_name, columns))
    removed, added = (f"(SELECT {listed} FROM {side})" for side in sides)  # noqa: S608 - our names
    if not are_all:
        total = sum(map(database.count, sides))
        if 2 * _equal_rows(database, removed, added, columns) > _MOST * total:
            _keep_left(database, (removed, added), into)
            return
    for name, rows in zip(into, (removed, added), strict=True):
        database.run(f"CREATE VIEW {name} AS {rows[1:-1]}")


def _equal_rows(database: Calculator, removed: str, added: str, columns: Sequence[str]) -> int:
    """Return how many rows of one the engine takes for a row of the other.

    Most changes have none, and to see that costs a quarter of striking them out.
    """
    equal = (f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in map(postgres_name, columns))
    return database.count(f"{removed} AS a SEMI JOIN {added} AS b ON {' AND '.join(equal)}")


def _keep_left(database: Calculator, sides: tuple[str, str], into: tuple[str, str]) -> None:
    """Let digests decide: values that are equal may print differently, as 0 and -0 do.

    A set operation of the engine would make them one.
    """
    outputs = database.outputs(f"SELECT * FROM {sides[0]} AS r")  # noqa: S608 - our names
    numbered = f"row_number() OVER (PARTITION BY {_DIGEST}) AS {_NUMBER}"
    removed, added = (
        f"(SELECT *, {numbered} FROM (SELECT *, {digest(outputs)} AS {_DIGEST} FROM {side} AS r))"  # noqa: S608
        for side in sides
    )
    for name, rows, others in ((into[0], removed, added), (into[1], added, removed)):
        left = f"{rows} ANTI JOIN {others} USING ({_MARKS})"
        database.run(f"CREATE TABLE {name} AS SELECT * EXCLUDE ({_MARKS}) FROM {left}")  # noqa: S608
