"""Find columns that the connector would misread because of other objects in the database.

The connector looks up a column's type by name: in the table's schema first, then anywhere. Each
table also creates a type of its own name, so a table ``date`` is enough to lose all dates in its
schema. A user-defined type named like a built-in one, such as ``interval``, is read as the built-in
one in the stream, but as itself in the snapshot. Values of money are read from text, whose form
depends on the database's locale.
"""

from dataclasses import replace
from typing import Final

from cdc.source.server.connection import Connection, translated
from cdc.source.server.finding import Finding
from cdc.tables import TableId

_SHADOWED: Final = """
SELECT DISTINCT ON (n.nspname, c.relname, a.attnum)
       n.nspname, c.relname, a.attname, y.typname, s.nspname
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_type y ON y.oid = t.oid OR t.typcategory = 'A' AND y.oid = t.typelem
  JOIN pg_type o ON o.typname = y.typname AND o.oid <> y.oid
       AND (o.typnamespace IN ('pg_catalog'::regnamespace, c.relnamespace)
            OR y.typnamespace NOT IN ('pg_catalog'::regnamespace, c.relnamespace))
  JOIN pg_namespace s ON s.oid = o.typnamespace
 WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY n.nspname, c.relname, a.attnum, s.nspname
"""

_MONEY: Final = """
SELECT n.nspname, c.relname, a.attname, current_setting('lc_monetary')
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_type t ON t.oid = a.atttypid
 WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
   AND 'money'::regtype IN (t.oid, t.typbasetype)
   AND current_setting('lc_monetary') !~ '^(C|POSIX|en_US)'
 ORDER BY 1, 2, a.attnum
"""


def misread_types(connection: Connection, oids: list[int]) -> list[Finding]:
    """Return an error for each column of these tables whose values would be altered.

    Raises like ``translated``.
    """
    return _shadowed(connection, oids) + _money(connection, oids)


def _money(connection: Connection, oids: list[int]) -> list[Finding]:
    with translated("looking for money columns"):
        rows = connection.execute(_MONEY, (oids,)).fetchall()
    return [
        _error(
            TableId(schema, table),
            column,
            f"the connector cannot read money values as lc_monetary {locale} prints them",
            remedy="change the column to numeric, or remove the table from source.tables",
        )
        for schema, table, column, locale in rows
    ]


def _shadowed(connection: Connection, oids: list[int]) -> list[Finding]:
    with translated("looking for types with the same name"):
        rows = connection.execute(_SHADOWED, (oids,)).fetchall()
    return [
        _error(
            TableId(schema, table),
            column,
            f"the connector takes its type {name} for {other}.{name}",
            remedy=f"rename {_which(other, name)}, or remove the table from source.tables",
        )
        for schema, table, column, name, other in rows
    ]


def _which(schema: str, name: str) -> str:
    """Return which of the two types the user can rename."""
    if schema == "pg_catalog":
        return f"the column's own type {name}"
    return f"{schema}.{name}, which may be a table"


def _error(table: TableId, column: str, message: str, *, remedy: str) -> Finding:
    return replace(Finding.error(f"{table}.{column}", message, remedy=remedy), table=table)
