"""Describe a data file of a table, and read its key columns."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.refused import IndexRefusedError

_TAIL: Final = 8
"""Bytes at the end of a Parquet file: the length of its footer, and its magic."""
_BATCH: Final = 65_536


@dataclass(frozen=True, slots=True)
class DataFile:
    """Describes a data file as the table's log does.

    ``path`` is relative to the table, decoded; ``size`` is in bytes; ``rows`` counts the rows as
    written, also those that a deletion vector marks; ``modified`` is the log's time of the file.
    """

    path: str
    size: int
    rows: int
    modified: int = 0  # in milliseconds


@dataclass(frozen=True, slots=True)
class Stamp:
    """Tells the content of a file from that of any other, without reading all of it."""

    path: str
    size: int
    rows: int
    modified: int  # in nanoseconds; 0 if the file system does not know
    footer: int  # CRC-32: places and sizes of all column chunks, and their statistics


class KeyColumnReader:
    """Reads the key columns of the files of one table, and no others."""

    def __init__(self, files: fs.FileSystem, key: Sequence[KeyColumn]) -> None:
        """Take a file system whose root is the table's directory."""
        self._files = files
        self._key = key

    def stamp(self, file: DataFile) -> Stamp:
        """Return the file's stamp; only its footer is read.

        Raises IndexRefusedError if it is not the file that the table's log names.
        """
        with self._opened(file) as (source, parquet):
            info = self._files.get_file_info(file.path)
            return Stamp(
                path=file.path,
                size=file.size,
                rows=parquet.metadata.num_rows,
                modified=info.mtime_ns or 0,
                footer=_footer(source),
            )

    def batches(self, file: DataFile) -> Iterator[list[pa.Array]]:
        """Yield the key columns of the file's rows, some thousands at a time, in their order.

        Raises IndexRefusedError if the file has other columns, or is not what the log says.
        """
        with self._opened(file) as (_, parquet):
            yield from self._read(file, parquet, range(parquet.num_row_groups))

    def row_groups(
        self, file: DataFile, wanted: Callable[[range], bool]
    ) -> Iterator[tuple[range, list[pa.Array]]]:
        """Yield the rows of each wanted row group, and its key columns; others are not read."""
        with self._opened(file) as (_, parquet):
            begin = 0
            for group in range(parquet.num_row_groups):
                rows = range(begin, begin + parquet.metadata.row_group(group).num_rows)
                begin = rows.stop
                if wanted(rows):
                    columns = zip(*self._read(file, parquet, [group]), strict=True)
                    yield rows, [pa.concat_arrays(column) for column in columns]

    @contextmanager
    def _opened(self, file: DataFile) -> Iterator[tuple[pa.NativeFile, pq.ParquetFile]]:
        try:
            with self._files.open_input_file(file.path) as source:
                # INT96 in nanoseconds ends in the year 2262.
                parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
                self._refuse_other(file, source.size(), parquet.metadata.num_rows)
                yield source, parquet
        except (OSError, pa.ArrowException) as error:
            raise IndexRefusedError(
                f"data file {file.path} cannot be read: {type(error).__name__}"
            ) from error

    def _refuse_other(self, file: DataFile, size: int, rows: int) -> None:
        if (size, rows) != (file.size, file.rows):
            raise IndexRefusedError(
                f"data file {file.path} has {size} bytes and {rows} rows; "
                f"the table's log says {file.size} bytes and {file.rows} rows"
            )

    def _read(
        self, file: DataFile, parquet: pq.ParquetFile, groups: Sequence[int]
    ) -> Iterator[list[pa.Array]]:
        names = [column.physical for column in self._key]
        if missing := set(names) - set(parquet.schema_arrow.names):
            raise IndexRefusedError(f"data file {file.path} has no column {min(missing)}")
        for batch in parquet.iter_batches(_BATCH, row_groups=list(groups), columns=names):
            yield [batch.column(name) for name in names]


def _footer(source: pa.NativeFile) -> int:
    source.seek(source.size() - _TAIL)
    length = int.from_bytes(source.read(4), "little")
    source.seek(source.size() - _TAIL - length)
    return zlib.crc32(source.read(length))
