"""Rows of a query as texts, by COPY: one stream, in the connection's transaction."""

import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql

from cdc.errors import CdcError, ErrorKind
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

_TEXT: Final = pa.large_string()
BLOCK_BYTES: Final = 4 << 20


def names(number: int) -> list[str]:
    """Of so many text columns, whatever the source calls them."""
    return [f"c{position}" for position in range(number)]


def alone(table: TableId) -> sql.Composed:
    """Return what a query reads of a table: its own rows, and not those of its children.

    The stream has the rows of tables that inherit from it under the children's names. Partitions
    are tables of their own, and a partitioned table is not captured.
    """
    return sql.SQL("ONLY {}").format(sql.Identifier(table.schema, table.name))


def expression(column: sql.Composable, template: str) -> sql.Composed:
    """The template's SQL with the column in the place of ``{c}``."""
    parts = [sql.SQL(part) for part in template.split("{c}")]
    return sql.Composed([item for part in parts for item in (column, part)][1:])


def blocks(
    connection: Connection, query: sql.Composable, doing: str, *, block_bytes: int = BLOCK_BYTES
) -> Generator[bytes]:
    """What the query gives as CSV in whole rows, about ``block_bytes`` at a time.

    ``doing`` begins the message of an error. One that is not read to its end is cancelled when it
    is closed; the transaction is over then.
    """
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    with (
        translated(doing),
        _unread(doing),
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        yield from _whole_rows(copy, block_bytes)


@contextmanager
def _unread(doing: str) -> Iterator[None]:
    """Postgres quotes the value that it could not read."""
    try:
        yield
    except psycopg.DataError as error:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{doing}: a value cannot be read as what the query takes it for",
            detail=f"SQLSTATE {error.sqlstate}",
            remedy="correct the condition that was given, if there is one",
        ) from None


def _whole_rows(copy: psycopg.Copy, block_bytes: int) -> Iterator[bytes]:
    """COPY gives one row per message."""
    block = io.BytesIO()
    for row in copy:
        block.write(row)
        if block.tell() >= block_bytes:
            yield block.getvalue()
            block = io.BytesIO()
    if block.tell():
        yield block.getvalue()


def parsed(block: bytes, columns: Sequence[str]) -> pa.Table:
    """A table of texts. In CSV, NULL is nothing at all and the empty text is ``""``."""
    return pa_csv.read_csv(
        pa.BufferReader(block),
        read_options=pa_csv.ReadOptions(
            column_names=list(columns), block_size=len(block) + 1, use_threads=False
        ),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, _TEXT),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
