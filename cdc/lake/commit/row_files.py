"""Writes data files in pieces: more rows than fit into memory, straight to their place."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.data_file import OPTIONS, checked_schema, measured
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.statistics import statistics
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.file_store import FileStore

GROUP_BYTES: Final = 16 << 20
"""Of rows in memory before they become a row group."""
FILE_BYTES: Final = 128 << 20
"""Of rows as they were in memory; on disk they take less."""


@dataclass(slots=True)
class RowFiles:
    """Writes rows to new data files of the table in ``store``; no version has them yet.

    Used by one thread. Leaving the block by an error deletes the file that is open; what no
    version has is deleted by VACUUM in any case.
    """

    store: FileStore
    metadata: Metadata
    file_bytes: int = FILE_BYTES
    group_bytes: int = GROUP_BYTES
    clock: Callable[[], float] = time.time
    files: list[LiveFile] = field(default_factory=list)
    """The files that are complete and durable; their directory is not."""
    _waiting: list[pa.Table] = field(default_factory=list)
    _open: "_OpenFile | None" = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write_group()
            self._close()
        elif self._open is not None:
            self._open.discard()

    def add(self, rows: pa.Table) -> None:
        """Take rows in the columns of the table; raises ValueError for any others."""
        stored = pa.table(rows.columns, schema=checked_schema(rows.schema, self.metadata))
        self._waiting.append(stored)
        if sum(each.nbytes for each in self._waiting) >= self.group_bytes:
            self._write_group()

    def _write_group(self) -> None:
        rows = pa.concat_tables(self._waiting) if self._waiting else None
        self._waiting = []
        if rows is None or not rows.num_rows:
            return
        if self._open is None:
            reach(Failpoint.BEFORE_COPY_WRITE)
            self._open = _OpenFile.create(self.store, rows.schema, self._measured())
        self._open.write(rows)
        if self._open.bytes >= self.file_bytes:
            self._close()

    def _measured(self) -> list[str]:
        return [column.physical for column in measured(self.metadata)]

    def _close(self) -> None:
        if self._open is not None:
            self.files.append(self._open.finish(int(self.clock() * 1000)))
            self._open = None
            reach(Failpoint.AFTER_COPY_WRITE)


@dataclass(slots=True)
class _OpenFile:
    store: FileStore
    name: str
    sink: pa.NativeFile
    writer: pq.ParquetWriter
    measured: list[str]  # columns that get statistics, by their names in the file
    kept: list[pa.Table] = field(default_factory=list)
    bytes: int = 0

    @classmethod
    def create(cls, store: FileStore, schema: pa.Schema, measured: list[str]) -> Self:
        name = f"part-00000-{uuid4()}.c000.snappy.parquet"
        sink = store.tree.open_output_stream(name)
        return cls(store, name, sink, pq.ParquetWriter(sink, schema, **OPTIONS), measured)

    def write(self, rows: pa.Table) -> None:
        self.writer.write_table(rows, row_group_size=rows.num_rows)
        self.kept.append(rows.select(self.measured))
        self.bytes += rows.nbytes

    def finish(self, millis: int) -> LiveFile:
        """Make the file durable, and return how the log will have it."""
        self._close()
        return LiveFile(
            path=self.name,
            size=self.store.finish(self.name),
            modified=millis,
            stats=statistics(pa.concat_tables(self.kept), self.measured),
        )

    def discard(self) -> None:
        self._close()
        self.store.delete(self.name)

    def _close(self) -> None:
        self.writer.close()
        self.sink.close()
