"""Makes one data file of several of a plain table, whose rows are never marked as deleted.

The files are read and written piece by piece, so a work needs the memory of what it writes,
compressed, and of one piece. It is done beside the table's commits, by any thread.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from cdc.lake.commit.combined import CombineError, opened, write_combined
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.statistics import statistics
from cdc.lake.files.file_store import FileStore

Writer = Callable[[pa.NativeFile, pa.Schema, list[str]], pq.ParquetWriter]
"""Opens what writes a data file, as ``plain_writer`` does."""
PIECE_ROWS: Final = 8192
PIECE_BYTES: Final = 16 * 1024 * 1024
"""Rows of about so many bytes are written together, as one row group."""


def plain_name() -> str:
    """Return the name of a new data file."""
    return f"part-00000-{uuid4()}-c000.snappy.parquet"


def plain_writer(sink: pa.NativeFile, schema: pa.Schema, measured: list[str]) -> pq.ParquetWriter:
    """Return what writes a data file; the ``measured`` columns are those with statistics."""
    return pq.ParquetWriter(
        sink,
        schema,
        compression="snappy",
        use_dictionary=measured,
        write_statistics=measured,
        store_schema=False,  # Arrow's own description would only repeat it
    )


def combine_plain(
    store: FileStore,
    files: Sequence[LiveFile],
    measured: list[str],
    millis: int,
    writer_of: Writer = plain_writer,
) -> LiveFile:
    """Write one file of a table with the rows of all these, in their order, and return it.

    It has the columns of the first file; the others may lack some of them, which are NULL then.
    ``millis`` is now, in milliseconds since 1970. Raises CombineError for a file that is missing,
    or not what the log says, and OSError if the new one cannot be written.
    """
    sink, looked_at, schema = pa.BufferOutputStream(), list[pa.Table](), _schema(store, files[0])
    with writer_of(sink, schema, measured) as writer:
        for piece in _together(_pieces(store, files, schema)):
            writer.write_table(piece)
            looked_at.append(piece.select(measured))
    content = sink.getvalue()
    file = LiveFile(
        path=plain_name(),
        size=len(content),
        modified=millis,
        stats=statistics(pa.concat_tables(looked_at), measured),
    )
    write_combined(store, file, content.to_pybytes())
    return file


def _schema(store: FileStore, file: LiveFile) -> pa.Schema:
    with opened(store, file) as parquet:
        return parquet.schema_arrow.remove_metadata()


def _pieces(
    store: FileStore, files: Sequence[LiveFile], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for file in files:
        with opened(store, file) as parquet:
            for piece in parquet.iter_batches(PIECE_ROWS, use_threads=False):
                yield _cast(piece, schema, file)


def _cast(piece: pa.RecordBatch, schema: pa.Schema, file: LiveFile) -> pa.RecordBatch:
    """Return a piece in the one schema: Spark and Arrow name the element of a list differently."""
    try:
        return _completed(piece, schema).cast(schema)
    except ValueError as error:
        raise CombineError(f"{file.path} has other columns than the files beside it") from error


def _completed(piece: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Add the columns that the piece alone lacks, without a value."""
    names = piece.schema.names
    if not set(names) < set(schema.names):
        return piece
    for field in schema:
        if field.name not in names:
            piece = piece.append_column(field, pa.nulls(len(piece), field.type))
    return piece.select(schema.names)


def _together(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting, size = list[pa.RecordBatch](), 0
    for piece in pieces:
        waiting.append(piece)
        size += piece.nbytes
        if size >= PIECE_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
