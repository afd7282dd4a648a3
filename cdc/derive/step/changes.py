"""What has changed in the inputs of a derived table since it was calculated, by value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.inputs import Input, row_count
from cdc.derive.engine.net import keep_net
from cdc.derive.scope.scope import SCHEMA
from cdc.derive.step.known_changes import KnownChanges
from cdc.derive.step.mark import is_derived
from cdc.events.values.sql_text import postgres_name
from cdc.lake.changed.changed_rows import ChangedRows
from cdc.tables import TableId

_FEWEST: Final = 1000
"""So many changed rows are always few."""
_FEWEST_MOVED: Final = 200_000
"""And of a derived table, whose commits write rows anew that stand beside changed ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changed rows of each input that has another version than before."""

    rows: Mapping[TableId, ChangedRows]

    @property
    def count(self) -> int:
        """How many rows were removed and added."""
        return sum(len(each.removed) + len(each.added) for each in self.rows.values())


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
    return Changes(rows=found)


def keep_changes(database: Calculator, changes: Changes) -> set[TableId]:
    """Create the tables ``removed_rows`` and ``added_rows`` of each input; return those with rows.

    What was removed and added with equal values is in neither.
    """
    database.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    changed = set()
    for table, rows in changes.rows.items():
        removed, added = removed_rows(table), added_rows(table)
        keep_net(database, rows, removed, added)
        if database.count(removed) or database.count(added):
            changed.add(table)
    return changed


def removed_rows(table: TableId) -> str:
    """Return the name of the table of rows that an input has no more."""
    return f"{SCHEMA}.{postgres_name(f'removed {table}')}"


def added_rows(table: TableId) -> str:
    """Return the name of the table of rows that an input did not have."""
    return f"{SCHEMA}.{postgres_name(f'added {table}')}"
