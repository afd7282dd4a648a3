"""List all tables of the source, captured or not, and estimate their sizes."""

from dataclasses import dataclass
from typing import Final

from cdc.source.server.connection import Connection, translated
from cdc.tables import CONTROL_SCHEMA, TableId

_TABLES: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
   AND n.nspname <> %s
 ORDER BY 1, 2
"""
_SIZE: Final = """
SELECT c.reltuples::bigint, c.relpages, pg_table_size(c.oid)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %s AND c.relname = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Says how large a table is: ``rows`` by the last ANALYZE, or None before it; ``bytes`` now."""

    rows: int | None
    bytes: int | None


def tables_of(connection: Connection) -> list[TableId]:
    """Return all tables in order of their names, except Postgres's and our own.

    Raises like ``translated``.
    """
    with translated("reading the catalogue"):
        rows = connection.execute(_TABLES, (CONTROL_SCHEMA,)).fetchall()
    return [TableId(schema, name) for schema, name in rows]


def size_of(connection: Connection, table: TableId) -> Size:
    """Return the size without indexes; its fields are None if there is no such table.

    Raises like ``translated``.
    """
    with translated(f"reading the size of {table}"):
        row = connection.execute(_SIZE, (table.schema, table.name)).fetchone()
    if row is None:
        return Size(rows=None, bytes=None)
    rows, pages, size = row
    is_known = rows > 0 or (rows == 0 and (pages > 0 or size == 0))
    return Size(rows=int(rows) if is_known else None, bytes=int(size))
