"""Select the rows of a table by the values of a key, as its unique index compares them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.rows.copy import names, own_rows, select_list
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

_KEY: Final = """
WITH RECURSIVE key AS (
  SELECT a.attname AS name, a.atttypid AS type, x.indclass[k.place - 1] AS class,
         x.indisprimary AS is_primary, x.indexrelid AS index
    FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place), pg_attribute a
   WHERE x.indrelid = format('%%I.%%I', %(schema)s::text, %(table)s::text)::regclass
     AND x.indisunique AND x.indisvalid AND x.indpred IS NULL AND k.place <= x.indnkeyatts
     AND a.attrelid = x.indrelid AND a.attnum = k.number
     AND (SELECT array_agg(m.attname::text ORDER BY m.attname::text)
            FROM unnest(x.indkey) WITH ORDINALITY n(number, place), pg_attribute m
           WHERE n.place <= x.indnkeyatts AND m.attrelid = x.indrelid AND m.attnum = n.number
         ) = (SELECT array_agg(w ORDER BY w) FROM unnest(%(names)s::text[]) w)
), over AS (
  SELECT key.*, t.typtype, t.typbasetype FROM key JOIN pg_type t ON t.oid = key.type
  UNION ALL
  SELECT o.name, t.oid, o.class, o.is_primary, o.index, t.typtype, t.typbasetype
    FROM over o JOIN pg_type t ON t.oid = o.typbasetype WHERE o.typtype = 'd'
)
SELECT DISTINCT ON (o.name) o.name, format_type(o.type, -1), n.nspname, p.oprname
  FROM over o
  JOIN pg_opclass c ON c.oid = o.class
  JOIN pg_amop m ON m.amopfamily = c.opcfamily AND m.amoplefttype = c.opcintype
       AND m.amoprighttype = c.opcintype AND m.amopstrategy = 3
  JOIN pg_operator p ON p.oid = m.amopopr
  JOIN pg_namespace n ON n.oid = p.oprnamespace
 WHERE o.typtype <> 'd'
 ORDER BY o.name, o.is_primary DESC, o.index
"""
"""For each column of a key: its type without a length, because a cast would cut longer strings, and
the operator of its index, which for an extension's type is not in our search path.
"""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Names a column of a key, and the type and operator by which its index compares values."""

    name: str
    type: str  # as SQL writes it
    operator: tuple[str, str]  # schema and name

    def value(self, text: sql.Composable) -> sql.Composed:
        """Return SQL that casts ``text`` to the column's type.

        Money is cast by way of numeric, because its text depends on the locale.
        """
        number = "::numeric" if self.type == "money" else ""
        return sql.SQL("{}{}::{}").format(text, sql.SQL(number), sql.SQL(self.type))

    def equals(self, left: sql.Composable, right: sql.Composable) -> sql.Composed:
        """Return SQL that compares two values with the equality operator of the index."""
        schema, name = self.operator
        operator = sql.SQL("OPERATOR({}.{})").format(sql.Identifier(schema), sql.SQL(name))
        return sql.SQL("{} {} {}").format(left, operator, right)


def key_columns(
    connection: Connection, table: TableId, key_names: Sequence[str]
) -> tuple[KeyColumn, ...]:
    """Return the columns of the table's unique index on exactly these, in their order.

    Raises SOURCE_NOT_READY if there is no such index, and like ``translated``.
    """
    values = {"schema": table.schema, "table": table.name, "names": list(key_names)}
    with translated(f"reading the key of {table}"):
        rows = connection.execute(_KEY.encode(), values).fetchall()
    columns = {
        name: KeyColumn(name, kind, (schema, operator)) for name, kind, schema, operator in rows
    }
    if not key_names or set(columns) != set(key_names):
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{table} has no unique index on exactly these columns: {', '.join(key_names)}",
            remedy="resnapshot the whole table",
        )
    return tuple(columns[name] for name in key_names)


def rows_of_keys(
    table: TableId,
    columns: Sequence[SourceColumn],
    key: Sequence[KeyColumn],
    keys: Sequence[Sequence[str]],
) -> sql.Composed:
    """Select the rows of these keys."""
    places = [sql.Identifier(name) for name in names(len(key))]
    return sql.SQL("SELECT {} FROM {} t JOIN ({}) k ON {}").format(
        select_list(columns, "t"),
        own_rows(table),
        _distinct_keys(key, keys, places),
        _is_same(key, ("t",), places),
    )


def is_of_keys(
    table: TableId, key: Sequence[KeyColumn], keys: Sequence[Sequence[str]]
) -> sql.Composed:
    """Return the condition for the rows of these keys, for a query of ``own_rows``."""
    places = [sql.Identifier(name) for name in names(len(key))]
    return sql.SQL("EXISTS (SELECT FROM ({}) k WHERE {})").format(
        _distinct_keys(key, keys, places), _is_same(key, (table.schema, table.name), places)
    )


def _is_same(
    key: Sequence[KeyColumn], row: tuple[str, ...], places: Sequence[sql.Identifier]
) -> sql.Composed:
    """Return the condition for a row of the table named ``row`` to have the key ``k``."""
    return sql.SQL(" AND ").join(
        column.equals(sql.Identifier(*row, column.name), sql.SQL("k.{}").format(place))
        for column, place in zip(key, places, strict=True)
    )


def _distinct_keys(
    key: Sequence[KeyColumn], keys: Sequence[Sequence[str]], places: Sequence[sql.Identifier]
) -> sql.Composed:
    """Select the keys as values of their types; DISTINCT uses each type's own equality."""
    values = [
        sql.SQL("{} AS {}").format(column.value(place), place)
        for column, place in zip(key, places, strict=True)
    ]
    texts = [
        sql.SQL("{}::text[]").format(sql.Literal(list(column)))
        for column in zip(*keys, strict=True)
    ]
    return sql.SQL("SELECT DISTINCT {} FROM unnest({}) u({})").format(
        sql.SQL(", ").join(values), sql.SQL(", ").join(texts), sql.SQL(", ").join(places)
    )
