"""Read the rows of a query as text, by COPY: one stream, in the connection's transaction."""

import io
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.errors import error_from_result
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.rows.spelling import copied, respelling, spelling
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

_TEXT: Final = pa.large_string()
BLOCK_BYTES: Final = 4 << 20


def names(number: int) -> list[str]:
    """Return the names ``c0, c1, ..`` of so many text columns, whatever the source calls them."""
    return [f"c{position}" for position in range(number)]


def own_rows(table: TableId) -> sql.Composed:
    """Return the FROM item for a table's own rows, without those of its children.

    In the stream, rows of tables that inherit from it come under the children's names. Partitions
    are captured as tables of their own; a partitioned table is not captured.
    """
    return sql.SQL("ONLY {}").format(sql.Identifier(table.schema, table.name))


def expression(column: sql.Composable, template: str) -> sql.Composed:
    """Return the template's SQL with each ``{c}`` replaced by the column."""
    parts = [sql.SQL(part) for part in template.split("{c}")]
    return sql.Composed([item for part in parts for item in (column, part)][1:])


def select_list(columns: Sequence[SourceColumn], *of: str) -> sql.Composed:
    """Return the select list that spells each column as text; ``of`` is an alias of the table."""
    return sql.SQL(", ").join(
        expression(sql.Identifier(*of, column.name), spelling(column.pg, column.mask))
        for column in columns
    )


def copy_list(columns: Sequence[SourceColumn]) -> sql.Composed:
    """Return the select list of a COPY: the same texts as ``select_list``, at less cost."""
    return sql.SQL(", ").join(
        expression(sql.Identifier(column.name), copied(column.pg, column.mask))
        for column in columns
    )


def blocks(
    connection: Connection, query: sql.Composable, doing: str, *, block_bytes: int = BLOCK_BYTES
) -> Generator[bytes]:
    """Yield the result of the query as CSV, in blocks of whole rows of about ``block_bytes``.

    ``doing`` begins the message of an error. Closing the generator before its end cancels the
    query, which ends the transaction. Raises SOURCE_NOT_READY for a value that the query cannot
    convert, and otherwise like ``translated``.
    """
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    with (
        translated(doing),
        _without_values(doing),
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        yield from _whole_rows(_rows(connection, copy), block_bytes)


@contextmanager
def _without_values(doing: str) -> Iterator[None]:
    """Translate data errors without their message, in which Postgres quotes the value."""
    try:
        yield
    except psycopg.DataError as error:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{doing}: the query cannot convert a value to the type it needs",
            detail=f"SQLSTATE {error.sqlstate}",
            remedy="correct the condition, if you gave one",
        ) from None


def _rows(connection: Connection, copy: psycopg.Copy) -> Iterator[Buffer]:
    """Yield the rows of a COPY, which sends one per message.

    ``Copy.read`` costs more than all else that is done with a short row, so it is called only where
    no row has come yet: it waits for one.
    """
    while True:
        size, row = connection.pgconn.get_copy_data(1)
        if size < 0:
            _end(connection)
            return
        data = row if size else copy.read()
        if not data:
            return
        yield data


def _end(connection: Connection) -> None:
    """Receive what follows the last row; raises what ended the rows early."""
    for result in connection.wait(fetch_many(connection.pgconn)):
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result, encoding=connection.info.encoding)


def _whole_rows(rows: Iterable[Buffer], block_bytes: int) -> Iterator[bytes]:
    """Join rows to blocks."""
    block = io.BytesIO()
    for row in rows:
        block.write(row)
        if block.tell() >= block_bytes:
            yield block.getvalue()
            block = io.BytesIO()
    if block.tell():
        yield block.getvalue()


def parsed(block: bytes, columns: Sequence[str], kind: pa.DataType = _TEXT) -> pa.Table:
    """Parse a block of CSV into a table of strings of the type ``kind``.

    In the CSV of COPY, NULL is an empty field, and the empty string is ``""``.
    """
    return pa_csv.read_csv(
        pa.BufferReader(block),
        read_options=pa_csv.ReadOptions(
            column_names=list(columns), block_size=len(block) + 1, use_threads=False
        ),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, kind),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def respelled(rows: pa.Table, columns: Sequence[SourceColumn]) -> pa.Table:
    """Return the texts as the connector writes them, where SQL cannot do that."""
    for place, column in enumerate(columns):
        if (respell := respelling(column.pg)) is not None:
            field = rows.schema.field(place)
            texts = rows.column(place).to_pylist()
            made = [None if text is None else respell(text) for text in texts]
            rows = rows.set_column(place, field.name, pa.array(made, field.type))
    return rows
