"""Reads single rows of one data file: only some columns, and only their row groups."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

_BATCH_BYTES: Final = 16 << 20


class RowFile:
    """Reads rows of an open data file by their numbers in it, which are in ascending order.

    ``columns`` have the names of the file, and the types in which they are returned.
    """

    def __init__(self, parquet: pq.ParquetFile, columns: Sequence[pa.Field]) -> None:
        self._parquet, self._columns = parquet, columns
        held = set(parquet.schema_arrow.names)
        self._names = [column.name for column in columns if column.name in held]

    def cost(self, rows: NDArray[np.int64]) -> int:
        """Return how many bytes of values are read to get these rows."""
        return sum(self._bytes(group) for group, _, _ in self._groups(rows))

    def read(self, rows: NDArray[np.int64]) -> list[pa.ChunkedArray]:
        """Return the columns of these rows; one that was added to the table later is NULL."""
        parts = [
            part
            for group, begin, inside in self._groups(rows)
            for part in self._of_group(group, inside - begin)
        ]
        nothing = pa.table({name: pa.nulls(len(rows)) for name in self._names})
        table = pa.concat_tables(parts) if parts and self._names else nothing
        return [
            pc.cast(table[column.name], column.type)
            if column.name in self._names
            else pa.chunked_array([pa.nulls(len(rows), column.type)])
            for column in self._columns
        ]

    def _groups(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
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

    def _of_group(self, group: int, rows: NDArray[np.int64]) -> Iterator[pa.Table]:
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
                yield _whole(batch).take(pa.array(rows[low:high] - begin))
            begin += len(batch)
            if high == len(rows):
                return


def _whole(batch: pa.RecordBatch) -> pa.Table:
    """Return the rows without views, as files of delta-rs have: Arrow takes no rows of them."""
    columns = [column.cast(_without_views(column.type)) for column in batch.columns]
    return pa.table(columns, names=batch.schema.names)


def _without_views(of: pa.DataType) -> pa.DataType:
    if pa.types.is_list(of):
        return pa.list_(of.value_field.with_type(_without_views(of.value_type)))
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return plain.get(of, of)
