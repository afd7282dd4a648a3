"""Reads single rows of one data file: only some columns, and only their row groups."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from cdc.apply.local.arrow import arrow_type
from cdc.apply.local.not_local import NotLocalError
from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.file_index import Rows

MOST_BYTES: Final = 256 << 20
"""Bytes of values, as they are before compression, that are read for one batch. More of them are
read faster by Spark, on all cores."""
_BATCH_BYTES: Final = 16 << 20
_PAGE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of the table: its name in data files, and the lake's type as Spark DDL text."""

    physical: str
    type: str


@contextmanager
def row_file(
    files: fs.FileSystem, file: DataFile, columns: Sequence[StoredColumn]
) -> Iterator["RowFile"]:
    """Open a data file to read these columns; the root of ``files`` is the table's directory.

    Raises NotLocalError if it cannot be read, or is not the file that the table's log names.
    """
    try:
        with files.open_input_file(file.path) as source:
            # INT96 in nanoseconds ends in the year 2262. Without a buffer, a column's whole chunk
            # would be in memory at once.
            parquet = pq.ParquetFile(
                source, coerce_int96_timestamp_unit="us", buffer_size=_PAGE_BYTES
            )
            if (source.size(), parquet.metadata.num_rows) != (file.size, file.rows):
                raise NotLocalError(f"data file {file.path} is not the one of the table's log")
            yield RowFile(parquet, columns)
    except (OSError, pa.ArrowException) as error:
        raise NotLocalError(f"data file {file.path}: {type(error).__name__}") from error


class RowFile:
    """A data file that is open; rows are numbers in it, in ascending order."""

    def __init__(self, parquet: pq.ParquetFile, columns: Sequence[StoredColumn]) -> None:
        self._parquet, self._columns = parquet, columns
        held = set(parquet.schema_arrow.names)
        self._names = [column.physical for column in columns if column.physical in held]

    def cost(self, rows: Rows) -> int:
        """Return how many bytes of values are read to get these rows."""
        return sum(self._bytes(group) for group, _, _ in self._groups(rows))

    def read(self, rows: Rows) -> list[pa.ChunkedArray]:
        """Return the columns of these rows; one that was added to the table later is NULL."""
        parts = [
            part
            for group, begin, inside in self._groups(rows)
            for part in self._of_group(group, inside - begin)
        ]
        nothing = pa.table({name: pa.nulls(len(rows)) for name in self._names})
        table = pa.concat_tables(parts) if parts and self._names else nothing
        return [
            pc.cast(table[column.physical], arrow_type(column.type))
            if column.physical in self._names
            else pa.chunked_array([pa.nulls(len(rows), arrow_type(column.type))])
            for column in self._columns
        ]

    def _groups(self, rows: Rows) -> Iterator[tuple[int, int, Rows]]:
        """Yield each row group with such rows: its number, its first row, and the rows."""
        begin = 0
        for group in range(self._parquet.num_row_groups):
            end = begin + self._parquet.metadata.row_group(group).num_rows
            low, high = np.searchsorted(rows, (begin, end))
            if low < high:
                yield group, begin, rows[low:high]
            begin = end

    def _bytes(self, group: int) -> int:
        found = self._parquet.metadata.row_group(group)
        chunks = [found.column(number) for number in range(found.num_columns)]
        prefixes = tuple(f"{name}." for name in self._names)
        return sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if f"{chunk.path_in_schema}.".startswith(prefixes)
        )

    def _of_group(self, group: int, rows: Rows) -> Iterator[pa.Table]:
        """Yield the rows, numbered within the row group, a few megabytes read at a time."""
        if not self._names:
            return
        held = self._parquet.metadata.row_group(group).num_rows
        size = max(1, min(held, held * _BATCH_BYTES // max(1, self._bytes(group))))
        batches = self._parquet.iter_batches(size, row_groups=[group], columns=self._names)
        begin = 0
        for batch in batches:
            low, high = np.searchsorted(rows, (begin, begin + len(batch)))
            if low < high:
                yield pa.table(batch.take(pa.array(rows[low:high] - begin)))
            begin += len(batch)
            if high == len(rows):
                return
