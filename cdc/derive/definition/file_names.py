"""Relates derived tables to the names of the files that define them."""

from typing import Final

from cdc.tables import CONTROL_SCHEMA, TableId

QUERY: Final = ".sql"
FOLD: Final = ".py"
_FAULTS: Final = "__faults"
_LATE: Final = "__late"


def tables_of(name: str) -> tuple[TableId, ...]:
    """Return the tables that a file of this name derives; none if it names no table.

    A fold derives two: its states and its faults.
    """
    suffix = FOLD if name.endswith(FOLD) else QUERY
    parts = name.removesuffix(suffix).split(".")
    if len(parts) != len(("schema", "table")) or not all(parts) or parts[0] == CONTROL_SCHEMA:
        return ()
    table = TableId(*parts)
    return (table, faults_of(table)) if suffix == FOLD else (table,)


def faults_of(table: TableId) -> TableId:
    """Return the table of the faults of a fold."""
    return TableId(table.schema, table.name + _FAULTS)


def late_of(table: TableId) -> TableId:
    """Return the table of the late rows of a derived table."""
    return TableId(table.schema, table.name + _LATE)


def files_of(table: TableId) -> tuple[str, ...]:
    """Return the names of the files of which each would derive the table."""
    named = (f"{table}{QUERY}", f"{table}{FOLD}")
    for suffix, kind in ((_FAULTS, FOLD), (_LATE, QUERY)):
        if table.name.endswith(suffix):
            return (*named, f"{str(table).removesuffix(suffix)}{kind}")
    return named
