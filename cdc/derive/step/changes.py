"""Finds what has changed in the inputs of a derived table since it was calculated, by value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import row_count
from cdc.derive.engine.net import narrow_net
from cdc.derive.scope.scope import SCHEMA
from cdc.derive.step.known_changes import Known, KnownChanges
from cdc.derive.step.mark import is_derived
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId

STORED_SCHEMA: Final = "_cdc_stored"
"""Has what is kept from step to step."""
_FEWEST: Final = 1000
"""So many changed rows are always few."""
_FEWEST_MOVED: Final = 200_000
"""And of a derived table, whose commits write rows anew that stand beside changed ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Holds the changed rows of each input that has another version than before.

    They have more columns than the ``columns`` that were asked for, if others need those.
    """

    rows: Mapping[TableId, Known]
    columns: Mapping[TableId, Sequence[str]]

    @property
    def count(self) -> int:
        """Return how many rows were removed and added."""
        return sum(map(len, self.rows.values()))

    def are_of(self, tables: Iterable[TableId]) -> bool:
        """Return whether all these tables have changed."""
        return all(table in self.rows for table in tables)


def changes_since(
    before: Mapping[TableId, Input],
    now: Mapping[TableId, Input],
    opened: Mapping[TableId, DeltaTable],
    columns: Mapping[TableId, Sequence[str]],
    *,
    known: KnownChanges,
    share: float,
) -> Changes | str:
    """Return what has changed in these columns, or why that is not known or not few.

    Few is at most a ``share`` of each input's rows.
    """
    found = {}
    for table, one in now.items():
        old = before.get(table)
        if old is None or old.path != one.path:
            return f"its input {table} is another table"
        if old.version == one.version:
            continue
        fewest = _FEWEST_MOVED if is_derived(opened[table]) else _FEWEST
        most = max(fewest, int(share * row_count(opened[table])))
        rows = known.rows(old, one.version, columns[table], most)
        if rows is None:
            return f"what has changed in {table} is not known, or too much"
        found[table] = rows
    return Changes(rows=found, columns=columns)


def keep_changes(database: Calculator, changes: Changes) -> set[TableId]:
    """Create the tables ``removed_rows`` and ``added_rows`` of each input; return those with rows.

    What was removed and added with equal values is in neither. The database has the ``net_rows``.
    """
    database.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    changed = set()
    for table, known in changes.rows.items():
        columns, sides = changes.columns[table], (removed_rows(table), added_rows(table))
        are_all = len(columns) == known.rows.added.num_columns
        narrow_net(database, columns, net_rows(table), sides, are_all=are_all)
        if any(map(database.count, sides)):
            changed.add(table)
    return changed


def net_rows(table: TableId) -> tuple[str, str]:
    """Return the names of the tables of an input's removed and added rows, with all columns."""
    removed, added = (postgres_name(f"{side} {table}") for side in ("removed", "added"))
    return f"{STORED_SCHEMA}.{removed}", f"{STORED_SCHEMA}.{added}"


def removed_rows(table: TableId) -> str:
    """Return the name of the table of rows that an input has no more."""
    return f"{SCHEMA}.{postgres_name(f'removed {table}')}"


def added_rows(table: TableId) -> str:
    """Return the name of the table of rows that an input did not have."""
    return f"{SCHEMA}.{postgres_name(f'added {table}')}"
