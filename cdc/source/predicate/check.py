"""What Postgres says of a predicate before a row is read: whether it takes it, and of how many."""

from collections.abc import Sequence
from typing import Final

from psycopg import errors, sql

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.catalog.catalog import ATTRIBUTES, DECLARED
from cdc.source.predicate.predicate import Predicate, parse
from cdc.source.rows.copy import alone
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
    """The text as a predicate over the table's columns; enums are looked up.

    Raises CONFIG like ``parse``.
    """
    return parse(text, table, columns, enums=_names(connection, table, _ENUMS))


def checked(connection: Connection, table: TableId, predicate: Predicate) -> int | None:
    """How many rows Postgres expects inside it, by its statistics; nothing is read.

    Raises CONFIG with Postgres's own sentence when it refuses the predicate, or when equal texts
    of a column may differ in their bytes; SOURCE_NOT_READY when the role may not read the table.
    """
    _refuse_loose(connection, table, predicate)
    asked = statement(table, predicate, sql.SQL("1"))
    with translated(f"reading {table}"):
        try:
            row = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(asked)).fetchone()
        except errors.InsufficientPrivilege:
            raise
        except (errors.DataError, errors.ProgrammingError, errors.NotSupportedError) as error:
            raise CdcError(
                ErrorKind.CONFIG,
                f"Postgres refuses the predicate for {table}",
                detail=error.diag.message_primary or type(error).__name__,
                remedy=f"correct it; it was read as: {predicate.text}",
            ) from None
    rows = row[0][0]["Plan"].get("Plan Rows") if row else None
    return None if rows is None else int(rows)


def statement(table: TableId, predicate: Predicate, columns: sql.Composable) -> sql.Composed:
    """``SELECT columns`` of the rows inside; to be run without parameters."""
    return sql.SQL("SELECT {} FROM {} WHERE {}").format(
        columns, alone(table), sql.SQL(predicate.source)
    )


def _refuse_loose(connection: Connection, table: TableId, predicate: Predicate) -> None:
    """Under some collations different bytes are equal texts; to Spark they never are."""
    for name in _names(connection, table, _LOOSE):
        if name in predicate.collated:
            raise CdcError(
                ErrorKind.CONFIG,
                f"the predicate compares column {name} of {table}, whose collation is "
                "nondeterministic: texts that are equal to Postgres are not to Spark",
                remedy="use another column, or ask IS NULL or IS NOT NULL of it",
            )


def _names(connection: Connection, table: TableId, query: str) -> list[str]:
    with translated("reading the catalogue"):
        rows = connection.execute(query.encode(), (table.schema, table.name)).fetchall()
    return [str(name) for (name,) in rows]
