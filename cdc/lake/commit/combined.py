"""Makes one data file of several small ones: their rows without the deleted, in the same order.

This is done beside the table's commits, by any thread, and takes as long as it takes. Commits that
are made meanwhile may delete rows of the old files; the new file gets a deletion vector for these
when it takes their place, so neither has to wait for the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types
from pyroaring import BitMap64

from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.data_file import stored_file, stored_schema
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.file_store import FileStore

MEMORY_BYTES: Final = 96 * 1024 * 1024
"""No further file is read once the rows take up so much memory."""


class CombineError(Exception):
    """Says why files are not combined here; they stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Describes one of the files that were combined."""

    file: LiveFile  # as it was when it was read
    deleted: BitMap64  # its deleted rows then, by number
    begin: int  # number in the combined file of its first row

    @property
    def rows(self) -> int:
        """Return the number of its rows that are in the combined file."""
        return self.file.records - len(self.deleted)

    def moved(self, deleted: BitMap64) -> list[int]:
        """Return the rows of the combined file that are deleted since, given all deleted rows.

        Raises CombineError if a row is deleted no more, as after a RESTORE: it was left out.
        """
        if not self.deleted <= deleted:
            raise CombineError(f"rows of {self.file.path} are back that were deleted")
        before = self.deleted.rank  # number of deleted rows up to one
        return [self.begin + row - before(row) for row in deleted - self.deleted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Holds a new data file, which is durable but in no version yet, and what it is made of."""

    file: LiveFile
    sources: tuple[Source, ...]
    metadata: Metadata  # of the table when the files were read

    def deleted_since(
        self, live: Mapping[str, LiveFile], deleted: Callable[[LiveFile], BitMap64]
    ) -> BitMap64:
        """Return the rows of the new file that are deleted in a version with these live files.

        All rows of a file that has left the table count: they are deleted, or in another file.
        Raises CombineError if the new file would lack rows.
        """
        since = BitMap64()
        for source in self.sources:
            now = live.get(source.file.path)
            if now is None:
                since |= BitMap64(range(source.begin, source.begin + source.rows))
            else:
                since |= BitMap64(source.moved(deleted(now)))
        return since


def combine(
    store: FileStore,
    metadata: Metadata,
    chosen: Sequence[tuple[LiveFile, BitMap64]],
    millis: int,
) -> Combined:
    """Write one file with the rows of the chosen ones, each given with its deleted rows.

    Perhaps only the first two or more of them are taken (``MEMORY_BYTES``). ``store`` has the
    table's files, ``millis`` is now, in milliseconds since 1970. Raises CombineError for a file
    that is missing, not what the log says, or of other types than the table's columns.
    """
    parts, sources, begin = list[pa.Table](), list[Source](), 0
    for file, deleted in chosen:
        parts.append(rows_left(stored_rows(store, file, metadata), deleted))
        sources.append(Source(file=file, deleted=deleted, begin=begin))
        begin += parts[-1].num_rows
        if len(parts) > 1 and sum(part.nbytes for part in parts) > MEMORY_BYTES:
            break
    content, file = stored_file(pa.concat_tables(parts), metadata, uuid4(), millis)
    write_combined(store, file, content)
    return Combined(file=file, sources=tuple(sources), metadata=metadata)


def write_combined(store: FileStore, file: LiveFile, content: bytes) -> None:
    """Write a file that is to take the place of others, durably."""
    reach(Failpoint.BEFORE_COMBINED_WRITE)
    store.write(file.path, content)
    reach(Failpoint.AFTER_COMBINED_WRITE)


def rows_left(rows: pa.Table, deleted: BitMap64) -> pa.Table:
    """Return the rows that are not deleted."""
    if not deleted:
        return rows
    kept = np.ones(rows.num_rows, dtype=bool)
    kept[np.fromiter(deleted, dtype=np.int64, count=len(deleted))] = False
    return rows.filter(pa.array(kept))


def stored_rows(store: FileStore, file: LiveFile, metadata: Metadata) -> pa.Table:
    """Return all rows of a file in its order, with the columns that the table has now.

    They have the schema ``stored_schema(metadata)``; deleted ones are among them. Raises
    CombineError for a file that is missing, not what the log says, or of other types.
    """
    with opened(store, file) as parquet:
        found = parquet.read(use_threads=False)
    return _with_columns(found, stored_schema(metadata), file)


@contextmanager
def opened(store: FileStore, file: LiveFile) -> Iterator[pq.ParquetFile]:
    """Open a data file of a table for the length of the block.

    Raises CombineError if it is missing, outside the table, or not what the log says; also if the
    block cannot read it.
    """
    try:
        # INT96 in nanoseconds ends in the year 2262.
        with pq.ParquetFile(
            _place(file), filesystem=store.tree, coerce_int96_timestamp_unit="us"
        ) as parquet:
            if (found := parquet.metadata.num_rows) != file.records:
                raise CombineError(f"{file.path} has {found} rows, in the log {file.records}")
            yield parquet
    except (OSError, pa.ArrowException) as error:
        raise CombineError(f"{file.path} cannot be read: {type(error).__name__}") from error


def _place(file: LiveFile) -> str:
    name = unquote(file.path)  # the log has paths as URLs
    if PurePosixPath(name).is_absolute() or ":" in name:
        raise CombineError(f"{file.path} is outside the table")
    return name


def _with_columns(found: pa.Table, schema: pa.Schema, file: LiveFile) -> pa.Table:
    """Return the rows with the columns of the table: NULL in a file that is older than one."""
    # Asking the table for its names, or for a column by name, costs as much as it has columns.
    columns = dict(zip(found.column_names, found.columns, strict=True))
    return pa.table(
        [
            _column(columns[field.name], field, file)
            if field.name in columns
            else pa.nulls(found.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _column(column: pa.ChunkedArray, field: pa.Field, file: LiveFile) -> pa.ChunkedArray:
    """Return a column with the type that the table has."""
    if column.type == field.type:
        return column
    if not _is_same_kind(column.type, field.type):
        raise CombineError(f"{file.path} has {column.type} where the table has {field.type}")
    return column.cast(field.type)


def _is_same_kind(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the types differ only in how a file describes a timestamp, or an array."""
    if types.is_list(stored) and types.is_list(wanted):
        inner, outer = stored.value_type, wanted.value_type
        return bool(inner == outer) or _is_same_kind(inner, outer)
    return bool(types.is_timestamp(stored) and types.is_timestamp(wanted))
