"""Say what the connector's snapshot reads of each table.

Rows of the table alone: those of tables that inherit from it come under their own names, in the
stream as well. And the number of a day in place of the date: the connector takes a date for one of
the calendar of 1500, without its era, so that BC dates, the ten days that calendar lacks, and
infinity would arrive as others. The number is what it writes in the end (decision 0010).
"""

import re
from typing import Final

from cdc.events.pg_types import INFINITE_DAYS
from cdc.source.catalog import SourceTable
from cdc.source.columns import SourceColumn

SETTING: Final = "snapshot.select.statement.overrides"

_EPOCH: Final = "date '1970-01-01'"


def overrides(tables: list[SourceTable]) -> dict[str, str]:
    """Return the connector's settings with a SELECT for each table; empty without a table."""
    found = {str(table.table): _select(table) for table in tables if _arriving(table)}
    if not found:
        return {}
    return {SETTING: ",".join(found)} | {f"{SETTING}.{name}": sql for name, sql in found.items()}


def _select(table: SourceTable) -> str:
    columns = ", ".join(map(_expression, _arriving(table)))
    # Every name is quoted, and none of its signs can end the quotes.
    name = f"{_quoted(table.table.schema)}.{_quoted(table.table.name)}"
    return f"SELECT {columns} FROM ONLY {name}"  # noqa: S608


def _arriving(table: SourceTable) -> list[SourceColumn]:
    return [column for column in table.columns if column.arrives]


def _is_date(column: SourceColumn) -> bool:
    return column.pg.name == "date"


def _expression(column: SourceColumn) -> str:
    name = _quoted(column.name)
    if not _is_date(column):
        return name
    infinite = " ".join(
        f"WHEN {name} = '{text}' THEN {days}" for text, days in INFINITE_DAYS.items()
    )
    return f"CASE {infinite} ELSE {name} - {_EPOCH} END AS {name}"


def _quoted(name: str) -> str:
    """By the codes of all but letters and digits: Connect replaces ``${..}`` in a setting."""
    spelled = re.sub(r"[^A-Za-z0-9_]", lambda found: f"\\+{ord(found[0]):06X}", name)
    return f'U&"{spelled}"'
