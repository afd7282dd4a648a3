"""Combines the log's small files without Spark, whose OPTIMIZE holds landing up for seconds.

Each landing adds a file, and the job may be idle but for heartbeats.
"""

from typing import Final

import structlog
from deltalake import CommitProperties, PostCommitHookProperties

from cdc.config import Job
from cdc.lake.table.positions import LandedPosition, file_sizes, open_table
from cdc.lake.upkeep.control_tables import combine
from cdc.lake.upkeep.small_files import rewritten

MOST_BYTES: Final = 16 << 20
"""Bytes that are combined here; more is left to Spark."""
logger = structlog.get_logger(__name__)


class LogFiles:
    """The files of the log at ``path``; used by the thread that appends to it."""

    def __init__(self, path: str, policy: Job) -> None:
        self._path = path
        self._policy = policy
        self._landings = 0

    def landed(self, position: LandedPosition) -> None:
        """Combine small files if there are enough; called after each landing.

        The commit repeats the log's ``position``.
        """
        is_due = self._landings % self._policy.maintain_every_commits == 0
        self._landings += 1
        if is_due:
            self._combine(position)

    def _combine(self, position: LandedPosition) -> None:
        table = open_table(self._path)
        if table is None:
            return
        small = rewritten(file_sizes(table), self._policy.optimize_small_files, MOST_BYTES)
        if not small or sum(small) > MOST_BYTES:
            return
        mark = CommitProperties(custom_metadata={"userMetadata": position.metadata()})
        combine(
            self._path, table, small, mark, PostCommitHookProperties(cleanup_expired_logs=False)
        )
        logger.info("combined", path=self._path, small_files=len(small))
