"""Say what the connector's snapshot reads of each table.

Rows of the table alone: those of tables that inherit from it come under their own names, in the
stream as well. And the number of a day in place of the date: the connector takes a date for one of
the calendar of 1500, without its era, so that BC dates, the ten days that calendar lacks, and
infinity would arrive as others. The number is what it writes in the end (decision 0010).
"""

from typing import Final

from cdc.events.structure.declared import SourceColumn
from cdc.events.values.pg_types import INFINITE_DAYS
from cdc.events.values.sql_text import postgres_name_in_codes, postgres_string
from cdc.source.catalog.catalog import SourceTable

SETTING: Final = "snapshot.select.statement.overrides"

_EPOCH: Final = "date '1970-01-01'"


def overrides(tables: list[SourceTable]) -> dict[str, str]:
    """Return the connector's settings; none where its own SELECT does.

    Ours names the columns of now: of a table that is altered under the first snapshot the connector
    makes a new one, which it could not of this.
    """
    found = {str(table.table): _select(table) for table in tables if _is_special(table)}
    if not found:
        return {}
    return {SETTING: ",".join(found)} | {f"{SETTING}.{name}": sql for name, sql in found.items()}


def _select(table: SourceTable) -> str:
    columns = ", ".join(map(_expression, _arriving(table)))
    relation = ".".join(map(postgres_name_in_codes, (table.table.schema, table.table.name)))
    return f"SELECT {columns} FROM ONLY {relation}"  # noqa: S608 - quoted


def _arriving(table: SourceTable) -> list[SourceColumn]:
    return [column for column in table.columns if column.arrives]


def _is_special(table: SourceTable) -> bool:
    return table.has_children or any(map(_is_date, _arriving(table)))


def _is_date(column: SourceColumn) -> bool:
    return column.pg.name == "date"


def _expression(column: SourceColumn) -> str:
    # Connect puts other texts in the place of ${..} in a setting.
    name = postgres_name_in_codes(column.name)
    if not _is_date(column):
        return name
    infinite = " ".join(
        f"WHEN {name} = {postgres_string(text)} THEN {days}" for text, days in INFINITE_DAYS.items()
    )
    return f"CASE {infinite} ELSE {name} - {_EPOCH} END AS {name}"
