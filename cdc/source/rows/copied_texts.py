"""Read rows of a table as columns of texts, by COPY."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
from psycopg import sql

from cdc.events.structure.declared import SourceColumn
from cdc.source.rows.copy import blocks, copy_list, names, own_rows, parsed, respelled
from cdc.source.server.connection import Connection
from cdc.tables import TableId


def copied_texts(
    connection: Connection,
    table: TableId,
    columns: Sequence[SourceColumn],
    condition: sql.Composable | None = None,
) -> Iterator[pa.Table]:
    """Yield the table's own rows, or those that match the condition, in blocks.

    Each has string columns ``c0, c1, ..``, one per column, in the spelling of a reading. Raises
    like ``blocks``; leaving the blocks before the last one ends the connection's transaction.
    """
    query = sql.SQL("SELECT {} FROM {}").format(copy_list(columns), own_rows(table))
    if condition is not None:
        query = sql.SQL("{} WHERE {}").format(query, condition)
    fields = names(len(columns))
    with closing(blocks(connection, query, f"reading {table}")) as csv:
        for block in csv:
            yield respelled(parsed(block, fields, pa.string()), columns)
