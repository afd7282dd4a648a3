"""Opens a data file of a table to read single rows of it without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cdc.apply.local.arrow import arrow_type
from cdc.apply.local.not_local import NotLocalError
from cdc.lake.files.row_file import RowFile
from cdc.lake.key_index.data_file import DataFile

MOST_BYTES: Final = 256 << 20
"""Bytes of values, as they are before compression, that are read for one batch. More of them are
read faster by Spark, on all cores."""
_PAGE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Names a column of the table as data files do, and the lake's type as Spark DDL text."""

    physical: str
    type: str


@contextmanager
def row_file(
    files: fs.FileSystem, file: DataFile, columns: Sequence[StoredColumn]
) -> Iterator[RowFile]:
    """Open a data file to read these columns; the root of ``files`` is the table's directory.

    Raises NotLocalError if it cannot be read, or is not the file that the table's log names.
    """
    fields = [pa.field(column.physical, arrow_type(column.type)) for column in columns]
    try:
        with files.open_input_file(file.path) as source:
            # INT96 in nanoseconds ends in the year 2262. Without a buffer, a column's whole chunk
            # would be in memory at once.
            parquet = pq.ParquetFile(
                source, coerce_int96_timestamp_unit="us", buffer_size=_PAGE_BYTES
            )
            if (source.size(), parquet.metadata.num_rows) != (file.size, file.rows):
                raise NotLocalError(f"data file {file.path} is not the one of the table's log")
            yield RowFile(parquet, fields)
    except (OSError, pa.ArrowException) as error:
        raise NotLocalError(f"data file {file.path}: {type(error).__name__}") from error
