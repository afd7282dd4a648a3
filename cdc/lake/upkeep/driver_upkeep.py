"""Keeps a table small whose commits are made by this process: see ``DriverUpkeep``."""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from typing import Final, NamedTuple

import pyarrow as pa
import structlog

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.combined import Combined, CombineError
from cdc.lake.commit.committer import Committer, OpenTable
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.own_session import AnySession
from cdc.lake.table.foreign_commits import refuse_damaged
from cdc.lake.table.positions import Position
from cdc.lake.upkeep.driver_files import LOCAL_BYTES, combined, is_purged_here, purged
from cdc.lake.upkeep.maintenance import Files, Maintainer

REST: Final = 50
"""How many times as long as a checkpoint took the next one waits. A checkpoint has every file that
was removed within the retention: after a day of commits it takes seconds."""
logger = structlog.get_logger(__name__)


class DriverUpkeep:
    """Keeps one table small; called after each commit that this process made without Spark.

    Its contract, for whoever makes these commits:

    - One object per table, beside its ``Committer``, and used by the thread that commits.
    - ``committed`` is called when the commit's version is in the log, with the position that it
      has. It may make commits of its own, with the same position: a table's newest version is
      what the log has afterwards, not what ``commit`` returned. The next commit begins with
      ``Committer.open``, as always.
    - It costs a commit milliseconds: reading, writing and deleting files, and checkpoints, are the
      work of ``executor``, one at a time for this table. A result is put into the table by a later
      call of ``committed``. A table that gets no further commit keeps its files until then.
    - Only what the process cannot do is Spark's, on the calling thread, and takes seconds: many
      files of ``LOCAL_BYTES`` and more, and large files with many deleted rows. ``Maintainer``
      decides that, every ``job.maintain_every_commits`` commits by any writer.
    - It raises what stops a table (CHAIN_BROKEN for a vector that is damaged, and for a log that
      no reader can open, which shows when a checkpoint cannot be written) and Spark's errors.
      Files that cannot be combined are left to Spark, with a line in the job's log.
    - Whoever owns the executor shuts it down. A work that has begun ends by itself; its file is in
      no version then, and is deleted as a stray.
    """

    def __init__(
        self,
        committer: Committer,
        maintainer: Maintainer,
        executor: Executor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the table of ``committer``; ``maintainer`` is the one that its MERGEs call too."""
        self._committer = committer
        self._maintainer = maintainer
        self._executor = executor
        self._combining: Future[Combined] | None = None
        self._clock = clock
        self._checkpoint: Future[_Written] | None = None
        self._resume_at = -math.inf  # when the next checkpoint may be written
        self._checked: int | None = None  # newest version that was considered for a checkpoint
        self._left = frozenset[str]()  # paths of files that could not be combined

    def committed(self, session: AnySession, position: Position) -> None:
        """Keep the table small after a commit with ``position``; see the class."""
        try:
            table = self._combine(position)
        except TakeMergeError:
            return  # the table has something now that commits without Spark do not know
        self._write_checkpoint(table.version)
        self._maintainer.committed(session, position.metadata(), lambda: measured(table))

    def _combine(self, position: Position) -> OpenTable:
        """Put a combined file into the table, or begin with another; return the newest version."""
        table = self._committer.open()
        if self._combining is None:
            self._begin(table)
        elif self._combining.done():
            work, self._combining = self._combining, None
            self._end(work, position)
            return self._committer.open()
        return table

    def _begin(self, table: OpenTable) -> None:
        self._left &= table.files.keys()
        files = [file for path, file in table.files.items() if path not in self._left]
        chosen = combined(files) or purged(files)
        if chosen:
            work = self._committer.combining(chosen)
            self._combining = self._executor.submit(_unless_left, work, chosen)

    def _end(self, work: Future[Combined], position: Position) -> None:
        try:
            result = work.result()
            version = self._committer.take_place(result, position)
        except LeftError as error:
            self._left |= error.paths
            logger.warning("files are not combined", reason=str(error))
        except CombineError as error:
            logger.info("combined in vain", reason=str(error))
        except CdcError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            logger.warning("combined in vain", reason=error.message)
        else:
            logger.info("combined", files=len(result.sources), version=version or "none is left")

    def _write_checkpoint(self, version: int) -> None:
        """Have the newest version that is due written; it stays due while that has to wait."""
        if self._checkpoint is not None and self._checkpoint.done():
            last, self._checkpoint = self._checkpoint.result(), None
            self._resume_at = self._clock() + last.seconds * REST
            if not last.is_whole:
                refuse_damaged(self._committer.path)
        before = version - 1 if self._checked is None else self._checked
        self._checked = before
        if self._checkpoint is not None or self._clock() < self._resume_at:
            return
        self._checked = version
        if (due := self._committer.due_for_checkpoint(before, version)) is not None:
            self._checkpoint = self._executor.submit(self._timed, due)

    def _timed(self, version: int) -> "_Written":
        began = self._clock()
        is_whole = self._committer.checkpoint(version)
        return _Written(self._clock() - began, is_whole)


class _Written(NamedTuple):
    """Says how long a checkpoint took, and whether it was written."""

    seconds: float
    is_whole: bool


class LeftError(Exception):
    """Says why files cannot be combined, and names them: they are not to be tried again."""

    def __init__(self, reason: str, paths: frozenset[str]) -> None:
        super().__init__(reason)
        self.paths = paths


def _unless_left(work: Callable[[], Combined], chosen: Iterable[LiveFile]) -> Combined:
    try:
        return work()
    except (CombineError, OSError, pa.ArrowException) as error:
        raise LeftError(str(error), frozenset(file.path for file in chosen)) from error


def measured(table: OpenTable) -> Files:
    """Return the files that are Spark's to maintain, without reading any.

    The smaller ones are combined here, or purged. Rows are counted as ``maintenance.files`` does.
    """
    sizes = tuple(file.size for file in table.files.values() if file.size >= LOCAL_BYTES)
    large = [file for file in table.files.values() if not is_purged_here(file)]
    return Files(sizes=sizes, deleted=_deleted(large))


def _deleted(files: Iterable[LiveFile]) -> float:
    marked = [(file.vector.cardinality, file.records) for file in files if file.vector]
    return sum(deleted for deleted, _ in marked) / max(1, sum(rows for _, rows in marked))
