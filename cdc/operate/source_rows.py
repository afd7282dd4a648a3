"""A table of the source as texts, by COPY: one stream, in the connection's transaction."""

import io
from collections.abc import Iterator, Mapping
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql

from cdc.operate.render import TEXT, Rendering
from cdc.source.postgres import Connection, translated
from cdc.tables import TableId

BLOCK_BYTES: Final = 4 << 20


def rows(
    connection: Connection, table: TableId, renderings: Mapping[str, Rendering]
) -> Iterator[pa.Table]:
    """Tables with a text column ``c0, c1, ..`` per rendering, in no order."""
    names = [f"c{position}" for position in range(len(renderings))]
    with (
        translated(f"reading {table}"),
        connection.cursor() as cursor,
        cursor.copy(_copy(table, renderings)) as copy,
    ):
        for block in _blocks(copy):
            yield _refined(_parse(block, names), renderings)


def _copy(table: TableId, renderings: Mapping[str, Rendering]) -> sql.Composed:
    columns = sql.SQL(", ").join(
        _expression(name, rendering.sql) for name, rendering in renderings.items()
    )
    return sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)").format(
        columns, sql.Identifier(table.schema, table.name)
    )


def _expression(name: str, template: str) -> sql.Composed:
    """The rendering's SQL with the column in the place of ``{c}``."""
    column = sql.Identifier(name)
    parts = [sql.SQL(part) for part in template.split("{c}")]
    return sql.Composed([item for part in parts for item in (column, part)][1:])


def _blocks(copy: psycopg.Copy) -> Iterator[bytes]:
    """Whole rows, some megabytes at a time; COPY gives one row per message."""
    block = io.BytesIO()
    for row in copy:
        block.write(row)
        if block.tell() >= BLOCK_BYTES:
            yield block.getvalue()
            block = io.BytesIO()
    if block.tell():
        yield block.getvalue()


def _parse(block: bytes, names: list[str]) -> pa.Table:
    """In CSV, NULL is nothing at all and the empty text is ``""``."""
    return pa_csv.read_csv(
        pa.BufferReader(block),
        read_options=pa_csv.ReadOptions(
            column_names=names, block_size=len(block) + 1, use_threads=False
        ),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, TEXT),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _refined(table: pa.Table, renderings: Mapping[str, Rendering]) -> pa.Table:
    for position, rendering in enumerate(renderings.values()):
        if rendering.source is not None:
            column = rendering.source(table.column(position).combine_chunks())
            table = table.set_column(position, f"c{position}", column)
    return table
