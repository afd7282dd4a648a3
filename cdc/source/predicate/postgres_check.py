"""Have Postgres check a predicate, and estimate its number of rows, before any row is read."""

from collections.abc import Sequence
from typing import Final

from psycopg import errors, sql

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.catalog.columns import ATTRIBUTES, DECLARED
from cdc.source.predicate.predicate import Predicate, parse
from cdc.source.rows.copy import own_rows
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

_COLUMN: Final = f"""
  FROM {ATTRIBUTES}
  JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
 WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
_ENUMS: Final = f"SELECT a.attname {_COLUMN} AND {DECLARED['kind']} = 'e'"
_LOOSE: Final = f"SELECT a.attname {_COLUMN} AND NOT l.collisdeterministic ORDER BY a.attnum"


def predicate(
    connection: Connection, table: TableId, columns: Sequence[SourceColumn], text: str
) -> Predicate:
    """Parse the text as a predicate over the table's columns, after looking up which are enums.

    Raises CONFIG like ``parse``, and whatever ``translated`` raises.
    """
    return parse(text, table, columns, enums=_names(connection, table, _ENUMS))


def estimated_rows(connection: Connection, table: TableId, predicate: Predicate) -> int | None:
    """Check the predicate by EXPLAIN and return Postgres's estimate of its number of rows.

    Reads no row. Raises CONFIG with Postgres's message if it refuses the predicate, and CONFIG if a
    compared column has a nondeterministic collation; SOURCE_NOT_READY if the role may not read the
    table.
    """
    _refuse_loose(connection, table, predicate)
    query = statement(table, predicate, sql.SQL("1"))
    with translated(f"reading {table}"):
        try:
            row = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(query)).fetchone()
        except errors.InsufficientPrivilege:
            raise
        except (errors.DataError, errors.ProgrammingError, errors.NotSupportedError) as error:
            raise CdcError(
                ErrorKind.CONFIG,
                f"Postgres refuses the predicate for {table}",
                detail=error.diag.message_primary or type(error).__name__,
                remedy=f"correct it; it was understood as: {predicate.text}",
            ) from None
    rows = row[0][0]["Plan"].get("Plan Rows") if row else None
    return None if rows is None else int(rows)


def statement(table: TableId, predicate: Predicate, columns: sql.Composable) -> sql.Composed:
    """Return a SELECT of ``columns`` of the matching rows, to be executed without parameters."""
    return sql.SQL("SELECT {} FROM {} WHERE {}").format(
        columns, own_rows(table), sql.SQL(predicate.source)
    )


def _refuse_loose(connection: Connection, table: TableId, predicate: Predicate) -> None:
    """Refuse nondeterministic collations: to them different bytes can be equal, to Spark never."""
    for name in _names(connection, table, _LOOSE):
        if name in predicate.collated:
            raise CdcError(
                ErrorKind.CONFIG,
                f"the predicate compares column {name} of {table}, whose collation is "
                "nondeterministic: strings that are equal for Postgres may differ for Spark",
                remedy="use another column, or only IS NULL or IS NOT NULL on this one",
            )


def _names(connection: Connection, table: TableId, query: str) -> list[str]:
    with translated("reading the catalogue"):
        rows = connection.execute(query.encode(), (table.schema, table.name)).fetchall()
    return [str(name) for (name,) in rows]
