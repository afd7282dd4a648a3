"""Read a table of the source as the texts to compare."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from psycopg import sql

from cdc.client.verify.render import Rendering
from cdc.source.rows.copy import blocks, expression, names, own_rows, parsed
from cdc.source.server.connection import Connection
from cdc.tables import TableId


def rows(
    connection: Connection, table: TableId, renderings: Mapping[str, Rendering]
) -> Iterator[pa.Table]:
    """Yield the rows in any order, with a text column ``c0, c1, ...`` for each rendering."""
    columns = names(len(renderings))
    for block in blocks(connection, _query(table, renderings), f"reading {table}"):
        yield _refined(parsed(block, columns), renderings)


def _query(table: TableId, renderings: Mapping[str, Rendering]) -> sql.Composed:
    columns = sql.SQL(", ").join(
        expression(sql.Identifier(name), rendering.sql) for name, rendering in renderings.items()
    )
    return sql.SQL("SELECT {} FROM {}").format(columns, own_rows(table))


def _refined(table: pa.Table, renderings: Mapping[str, Rendering]) -> pa.Table:
    for position, rendering in enumerate(renderings.values()):
        if rendering.source is not None:
            column = rendering.source(table.column(position).combine_chunks())
            table = table.set_column(position, f"c{position}", column)
    return table
