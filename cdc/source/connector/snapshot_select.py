"""Override the SELECT statements of the connector's snapshot where its own would be wrong.

Only the table's own rows are read: rows of tables that inherit from it come under their own names,
as in the stream. And a date is read as its day number: the connector would interpret it in the
hybrid Julian-Gregorian calendar and without its era, which would alter BC dates, the ten days
missing from that calendar, and infinity. It finally writes the day number anyway (decision 0010).
"""

from typing import Final

from cdc.events.structure.declared import SourceColumn
from cdc.events.values.pg_types import INFINITE_DAYS
from cdc.events.values.sql_text import postgres_name_in_codes, postgres_string
from cdc.source.catalog.catalog import SourceTable

SETTING: Final = "snapshot.select.statement.overrides"

_EPOCH: Final = "date '1970-01-01'"


def overrides(tables: list[SourceTable]) -> dict[str, str]:
    """Return the connector's settings for tables that need another SELECT than its own.

    The other tables get none, because our SELECT names the current columns. If a table is altered
    during the first snapshot, the connector can renew its own SELECT, but not ours.
    """
    selects = {str(t.table): _select(t) for t in tables if _is_special(t)}
    if not selects:
        return {}
    by_table = {f"{SETTING}.{name}": sql for name, sql in selects.items()}
    return {SETTING: ",".join(selects)} | by_table


def _select(table: SourceTable) -> str:
    columns = ", ".join(map(_expression, _arriving(table)))
    relation = ".".join(map(postgres_name_in_codes, (table.table.schema, table.table.name)))
    return f"SELECT {columns} FROM ONLY {relation}"  # noqa: S608 - quoted


def _arriving(table: SourceTable) -> list[SourceColumn]:
    """Return the columns that the connector reads, also those that its converter leaves out."""
    return [column for column in table.columns if column.arrives or column.mask]


def _is_special(table: SourceTable) -> bool:
    return table.has_children or any(map(_is_date, _arriving(table)))


def _is_date(column: SourceColumn) -> bool:
    return column.pg.name == "date"


def _expression(column: SourceColumn) -> str:
    # Kafka Connect would substitute ${..} in a setting.
    name = postgres_name_in_codes(column.name)
    if not _is_date(column):
        return name
    infinite = " ".join(
        f"WHEN {name} = {postgres_string(text)} THEN {days}" for text, days in INFINITE_DAYS.items()
    )
    return f"CASE {infinite} ELSE {name} - {_EPOCH} END AS {name}"
