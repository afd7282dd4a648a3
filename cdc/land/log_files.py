"""Combines the log's small files without Spark, and without landing waiting for it.

Each landing adds a file, and the job may be idle but for heartbeats. A file is written beside the
landings; the thread that lands puts it in the place of the small ones, so that every commit of the
log has the position of the last landing.
"""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Final

import structlog

from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.appender import Appender
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.table.positions import LandedPosition
from cdc.lake.upkeep.driver_files import worth_combining
from cdc.lake.upkeep.maintenance import Files, files
from cdc.lake.upkeep.small_files import SMALL_BYTES

WORK_BYTES: Final = 2 * SMALL_BYTES
"""The most bytes that are combined at once."""
NOTHING_LEFT: Final = Files(sizes=(), deleted=0.0)
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    sources: Sequence[LiveFile]
    result: Future[LiveFile]


class LogFiles:
    """Combines small files of the log at ``path``; used by the thread that appends to it."""

    def __init__(self, path: str, policy: Job, appender: Appender, executor: Executor) -> None:
        """Combine files by ``executor``."""
        self._path = path
        self._policy = policy
        self._appender: Appender | None = appender  # None once all is left to Spark
        self._executor = executor
        self._landings = 0
        self._work: _Work | None = None

    def landed(self, position: LandedPosition) -> None:
        """Combine small files if there are enough; called after each landing.

        A commit that this makes repeats the log's ``position``.
        """
        is_due = self._landings % self._policy.maintain_every_commits == 0
        self._landings += 1
        if self._appender is None:
            return
        try:
            if self._work is None and is_due:
                self._begin(self._appender)
            elif self._work is not None and self._work.result.done():
                work, self._work = self._work, None
                self._end(self._appender, work, position)
        except TakeMergeError as why:
            logger.info("left to spark", path=self._path, reason=why.reason)
            self._appender = None

    def settle(self, position: LandedPosition) -> None:
        """Wait for a file that is being made of others, and put it into their place."""
        if self._appender is None or self._work is None:
            return
        work, self._work = self._work, None
        self._end(self._appender, work, position)

    def left(self) -> Files:
        """Return the files that are Spark's to maintain."""
        return files(self._path) if self._appender is None else NOTHING_LEFT

    def _begin(self, appender: Appender) -> None:
        together = self._policy.optimize_small_files
        found = appender.files()
        if chosen := worth_combining(found, together, limit=SMALL_BYTES, most=WORK_BYTES):
            work = appender.combining(chosen)
            self._work = _Work(chosen, self._executor.submit(work))

    def _end(self, appender: Appender, work: _Work, position: LandedPosition) -> None:
        if (file := self._made(work)) is None:
            return
        try:
            version = appender.take_place(work.sources, file, position.metadata())
        except CdcError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            logger.warning("combined in vain", path=self._path, reason=error.message)
        else:
            count = len(work.sources)
            logger.info("combined", path=self._path, small_files=count, version=version or "none")

    def _made(self, work: _Work) -> LiveFile | None:
        """Return the new file; None, with a line in the job's log, if there is none."""
        try:
            return work.result.result()
        except CombineError as error:
            logger.warning("files are not combined", path=self._path, reason=str(error))
            self._appender = None
        except OSError as error:  # such as a full disk, or a store that does not answer
            logger.warning("combined in vain", path=self._path, reason=str(error))
        return None
