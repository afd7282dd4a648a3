"""Commits a small change to a Delta table from this process: no Spark, milliseconds.

The durable steps are the data file, the vector file and the log entry, in this order. Before the
entry is in the log, the new files belong to no version, and VACUUM deletes them if they stay so.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
import structlog
from pyroaring import BitMap64

from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.combined import Combined, CombineError, combine
from cdc.lake.commit.data_file import data_file
from cdc.lake.commit.deletion_vector import vector_file
from cdc.lake.commit.log_entry import Change, Origin, combined_counts, entry
from cdc.lake.commit.marks import DeletedRows, Marks, mark
from cdc.lake.commit.protocol import TakeMergeError, refusal
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import LiveFile, TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.store_of import store_of
from cdc.lake.table.checkpoint import write_checkpoint

logger = structlog.get_logger(__name__)


class CommitMark(Protocol):
    """Tells what a commit says of its rows, such as the position of their table."""

    def metadata(self) -> str:
        """Return the text for the commit's ``userMetadata``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTable:
    """Describes a version of a table to which this writer may commit."""

    version: int
    metadata: Metadata
    files: Mapping[str, LiveFile]  # by path


class Committer:
    """Commits to the table at ``path``; used by one thread at a time.

    ``clock`` gives seconds since 1970.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._store = store_of(path)
        self._log = LogReader(path)
        self._deleted = DeletedRows(path, self._store.read)
        self._interval = 1
        self._open: OpenTable | None = None

    def open(self) -> OpenTable:
        """Return the newest version of the table; the next commit follows it.

        Raises TakeMergeError if this writer may not commit to it, CHAIN_BROKEN if its log cannot
        be read.
        """
        self._open = None
        self._open = _permitted(self._log.newest())
        self._interval = self._open.metadata.checkpoint_interval
        self._deleted.forget_all_but(self._open.files)
        return self._open

    def deleted_rows(self, file: LiveFile) -> BitMap64:
        """Return the numbers of the file's deleted rows; they are not to be changed.

        Raises CHAIN_BROKEN if its vector is gone or damaged, TakeMergeError if it is elsewhere.
        """
        return self._deleted.of(file)

    def commit(
        self, rows: pa.Table, deleted: Mapping[str, Iterable[int]], position: CommitMark
    ) -> int:
        """Add rows and mark others as deleted in one commit, and return its version.

        ``rows``, perhaps none, have the schema ``arrow_schema(metadata)``; ``deleted`` are row
        numbers by path of a file that is live in the version that ``open`` returned. Raises
        CONFLICT if another commit has followed that version, and ValueError for rows that are not
        the table's or are deleted already: then nothing of this commit is in the table.
        """
        table, self._open = self._open, None
        if table is None:
            raise ValueError("a commit follows an open table")
        marks = mark(table.files, self._deleted, deleted)
        millis = int(self._clock() * 1000)
        added = self._write_rows(rows, table.metadata, millis)
        pairs = self._write_vectors(marks)
        change = Change(marked=pairs, removed=marks.emptied, added=added)
        self._store.settle()
        counts = _merged_counts(change, marks.newly, rows.num_rows)
        return self._put(table, change, counts, position, millis)

    def append(self, files: Sequence[LiveFile], position: CommitMark) -> int:
        """Add data files that are in the table's folder already, and return the version.

        Raises CONFLICT if another commit has followed the version that ``open`` returned.
        """
        table, self._open = self._open, None
        if table is None:
            raise ValueError("a commit follows an open table")
        rows, millis = sum(file.records for file in files), int(self._clock() * 1000)
        change = Change(marked=(), removed=(), added=files)
        self._store.settle()
        return self._put(table, change, _merged_counts(change, 0, rows), position, millis)

    def combining(self, files: Sequence[LiveFile]) -> Callable[[], Combined]:
        """Return the work of making one file of several live ones, for any thread to do.

        The files are those of the version that ``open`` returned. The work writes the new file,
        and raises what ``combine`` does; ``take_place`` puts it into the table. Raises
        CHAIN_BROKEN for a vector that is gone or damaged.
        """
        if self._open is None:
            raise ValueError("files are combined of an open table")
        chosen = [(file, self._deleted.of(file)) for file in files]
        millis = int(self._clock() * 1000)
        return partial(combine, self._store, self._open.metadata, chosen, millis)

    def take_place(self, combined: Combined, position: CommitMark) -> int | None:
        """Put a combined file in the place of its sources, and return the commit's version.

        The rows stay what they are: those deleted since get a deletion vector in the new file.
        ``position`` is that of the newest commit. Returns None, without a commit, if none of the
        sources is left. Raises CombineError if the table was altered or the file deleted meanwhile,
        CONFLICT as ``commit`` does.
        """
        table, self._open = self._open, None
        if table is None:
            raise ValueError("a commit follows an open table")
        if table.metadata != combined.metadata:
            raise CombineError("the table was altered meanwhile")
        if self._store.size(combined.file.path) != combined.file.size:
            raise CombineError("a VACUUM has deleted the combined file")  # no version had it
        since = combined.deleted_since(table.files, self._deleted.of)
        removed = [table.files[s.file.path] for s in combined.sources if s.file.path in table.files]
        if not removed:
            return None
        added = self._write_marked(combined.file, since)
        self._store.settle()
        change = Change(marked=(), removed=removed, added=added, moves=True)
        millis = int(self._clock() * 1000)
        return self._put(table, change, combined_counts(change), position, millis)

    def due_for_checkpoint(self, before: int, version: int) -> int | None:
        """Return the newest version after ``before``, up to ``version``, that is to have one."""
        newest = version - version % self._interval
        return newest if newest > before else None

    def checkpoint(self, version: int) -> bool:
        """Write a checkpoint of a version of the table; any thread may.

        Returns whether it was written: a failure is logged, since the table is whole without.
        """
        reach(Failpoint.BEFORE_TABLE_CHECKPOINT)
        if not write_checkpoint(self.path, version):
            return False
        reach(Failpoint.AFTER_TABLE_CHECKPOINT)
        return True

    def _write_rows(self, rows: pa.Table, metadata: Metadata, millis: int) -> list[LiveFile]:
        content, file = data_file(rows, metadata, uuid4(), millis)
        if not rows.num_rows:
            return []
        reach(Failpoint.BEFORE_ROWS_WRITE)
        self._store.write(file.path, content)
        reach(Failpoint.AFTER_ROWS_WRITE)
        return [file]

    def _write_vectors(self, marks: Marks) -> list[tuple[LiveFile, LiveFile]]:
        if not marks.rows:
            return []
        uuid = uuid4()
        content, pairs = marks.encoded(uuid)
        reach(Failpoint.BEFORE_VECTORS_WRITE)
        self._store.write(vector_file(uuid), content)
        reach(Failpoint.AFTER_VECTORS_WRITE)
        return pairs

    def _write_marked(self, file: LiveFile, deleted: BitMap64) -> list[LiveFile]:
        """Return a new file with a vector of its deleted rows; nothing if it has no others."""
        if len(deleted) == file.records:
            return []
        rows = {file.path: deleted} if deleted else {}
        pairs = self._write_vectors(Marks(rows=rows, files={file.path: file}, emptied=(), newly=0))
        return [marked for _, marked in pairs] or [file]

    def _put(
        self,
        table: OpenTable,
        change: Change,
        counts: Mapping[str, int],
        position: CommitMark,
        millis: int,
    ) -> int:
        origin = Origin(
            read_version=table.version,
            millis=millis,
            metadata=position.metadata(),
            transaction=str(uuid4()),
            counts=counts,
        )
        text = entry(change, origin)
        self._log.refuse_changed()
        reach(Failpoint.BEFORE_ENTRY_PUT)
        put_entry(self._store, table.version + 1, text)
        reach(Failpoint.AFTER_ENTRY_PUT)
        return table.version + 1


def _permitted(state: TableState) -> OpenTable:
    protocol, metadata = state.described()
    if (reason := refusal(protocol, metadata)) is not None:
        raise TakeMergeError(reason)
    return OpenTable(version=state.version, metadata=metadata, files=state.files)


def _merged_counts(change: Change, deleted: int, rows: int) -> dict[str, int]:
    return {
        "numOutputRows": rows,
        "numTargetRowsDeleted": deleted,
        "numTargetFilesAdded": len(change.added),
        "numTargetFilesRemoved": len(change.removed),
        "numTargetDeletionVectorsAdded": len(change.marked),
    }
