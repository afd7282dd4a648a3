"""What has changed in the inputs of a derived table since it was calculated, by value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.derive.engine.inputs import Input, row_count
from cdc.derive.scope.scope import SCHEMA
from cdc.lake.changed.changed_rows import ChangedRows, changed_rows
from cdc.tables import TableId

_FEWEST: Final = 1000
"""So many changed rows are always few."""


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
        most = max(_FEWEST, int(share * row_count(opened[table])))
        rows = changed_rows(one.path, old.version, one.version, columns[table], most)
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
    for number, (table, rows) in enumerate(changes.rows.items()):
        raw = f"{SCHEMA}.raw_removed_{number}", f"{SCHEMA}.raw_added_{number}"
        for name, each in zip(raw, (rows.removed, rows.added), strict=True):
            database.keep(name, each)
        removed, added = removed_rows(table), added_rows(table)
        database.run(_net(removed, raw[0], raw[1], database))
        database.run(_net(added, raw[1], raw[0], database))
        counts = f"SELECT (SELECT count(*) FROM {removed}) + (SELECT count(*) FROM {added})"  # noqa: S608
        if database.values(counts) != [(0,)]:
            changed.add(table)
    return changed


def removed_rows(table: TableId) -> str:
    """Return the name of the table of rows that an input has no more."""
    return f'{SCHEMA}."removed {table}"'


def added_rows(table: TableId) -> str:
    """Return the name of the table of rows that an input did not have."""
    return f'{SCHEMA}."added {table}"'


def _net(name: str, rows: str, others: str, database: Calculator) -> str:
    """Compare by digests: values that are equal may print differently, as 0 and -0 do."""
    outputs = database.outputs(f"SELECT * FROM {rows}")  # noqa: S608
    digested = f"SELECT *, {digest(outputs)} AS _cdc_digest FROM {{}}"  # noqa: S608
    listed = f"{digested.format(rows)} EXCEPT ALL {digested.format(others)}"
    return f"CREATE TABLE {name} AS SELECT * EXCLUDE (_cdc_digest) FROM ({listed})"  # noqa: S608
