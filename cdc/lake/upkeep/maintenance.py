"""Maintains a table written by Spark: measures its files, then optimizes, purges and cleans.

Each table is maintained by the thread that writes it, between two of its commits: open-source
Delta has no row-level concurrency, so a second writer would abort merges. Every commit made
here repeats the table's position (cdc.lake.table.positions).
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.events.values.sql_text import spark_delta, spark_string
from cdc.failpoints import Failpoint, reach
from cdc.lake.own_session import AnySession, OwnSession
from cdc.lake.table.positions import METADATA_CONF, file_sizes, open_table
from cdc.lake.upkeep.kept_versions import HOUR, KeptVersions, at_once
from cdc.lake.upkeep.small_files import DELETED_SHARE, SMALL_BYTES, rewritten
from cdc.lake.upkeep.strays import NotUnderstoodError, delete_strays

TARGET_BYTES: Final = 128 * 1024 * 1024
UNCOMMITTED_SECONDS: Final = 600
"""A file may be so old before a commit adds it; also covers a difference between two clocks."""
logger = structlog.get_logger(__name__)
OPTIMIZE_SETTINGS: Final[dict[str, str]] = {
    "spark.databricks.delta.optimize.maxFileSize": str(TARGET_BYTES),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": str(DELETED_SHARE),
}
REWRITTEN_BELOW: Final = "spark.databricks.delta.optimize.minFileSize"
"""Smaller files are rewritten; the default of 1 GB rewrites the whole table every time."""
VACUUM_SETTINGS: Final[dict[str, str]] = {
    # Number of tasks that list the files; starting 10,000 (the default) takes longer than listing.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Describes the data files of one version of a table."""

    sizes: tuple[int, ...]  # bytes
    deleted: float
    """Share of rows marked deleted, among files with deletion vectors; 0.0 if no file is large."""


def files(path: str) -> Files:
    """Return the data files of the newest version, without reading data.

    Deletion vectors are only read if a file is large: small files are soon rewritten anyway,
    without their deleted rows.
    """
    table = open_table(path)
    if table is None:
        return Files(sizes=(), deleted=0.0)
    sizes = file_sizes(table)
    large = any(size >= SMALL_BYTES for size in sizes)
    return Files(sizes=tuple(sizes), deleted=_deleted(table) if large else 0.0)


def _deleted(table: DeltaTable) -> float:
    live = pc.list_flatten(pa.table(table.deletion_vectors()).column("selection_vector"))
    return 1 - (pc.sum(live).as_py() or 0) / len(live) if len(live) else 0.0


class Maintainer:
    """Maintains one table; called after each commit, by the thread that made it."""

    def __init__(
        self,
        path: str,
        policy: Job,
        clock: Callable[[], float] = time.monotonic,
        executor: Executor | None = None,
    ) -> None:
        """Maintain the table at ``path``; without an executor its thread cleans it as well."""
        self._kept = KeptVersions(path, policy, clock, executor)
        self._path = path
        self._policy = policy
        self._clock = clock
        self._submit = at_once if executor is None else executor.submit
        self._strays: Future[int] | None = None
        self._commits = 0
        every = policy.vacuum_every_hours * HOUR
        # A job that is always stopped before that time also vacuums, but not at every start.
        self._vacuumed_at = clock() - every + min(every, HOUR)

    def committed(
        self,
        session: AnySession,
        metadata: str,
        measure: Callable[[], Files] | None = None,
    ) -> None:
        """Optimize, purge and clean where it pays; ``metadata`` is the position to repeat.

        ``measure`` returns the table's files, if the caller knows them; ``files`` reads the log.
        """
        # The first commit counts: a job may never make ``maintain_every_commits`` of them.
        is_due = self._commits % self._policy.maintain_every_commits == 0
        self._commits += 1
        if is_due:
            self._rewrite(session, metadata, files(self._path) if measure is None else measure())
            self._delete_strays(session, metadata)
        self._end_strays(session, metadata)
        self._kept.committed(session, metadata)

    def _rewrite(self, session: AnySession, metadata: str, current: Files) -> None:
        if small := rewritten(current.sizes, self._policy.optimize_small_files):
            optimize(OwnSession.of(session).get(), self._path, metadata, below=small[-1] + 1)
            logger.info("optimized", path=self._path, small_files=len(small))
        if current.deleted > DELETED_SHARE:
            purge(OwnSession.of(session).get(), self._path, metadata)
            logger.info("purged", path=self._path, deleted=round(current.deleted, 2))

    def _delete_strays(self, session: AnySession, metadata: str) -> None:
        """Begin with it if it is due."""
        if self._clock() - self._vacuumed_at < self._policy.vacuum_every_hours * HOUR:
            return
        if self._strays is None:
            self._vacuumed_at = self._clock()
            self._kept.keep(session, metadata)
            since = min(self._kept.since(), time.time() - UNCOMMITTED_SECONDS)
            self._strays = self._submit(delete_strays, self._path, since)

    def _end_strays(self, session: AnySession, metadata: str) -> None:
        if self._strays is None or not self._strays.done():
            return
        work, self._strays = self._strays, None
        try:
            deleted = work.result()
        except NotUnderstoodError as error:
            logger.info("left to spark", path=self._path, reason=str(error))
            if self._kept.are_held():
                return  # VACUUM knows nothing of that
            vacuum(OwnSession.of(session).get(), self._path, metadata)
        except OSError as error:
            logger.warning("stray files are not deleted", path=self._path, reason=str(error))
        else:
            logger.info("vacuumed", path=self._path, files=deleted)
        self._kept.clean_next()


def optimize(spark: SparkSession, path: str, metadata: str, *, below: int = SMALL_BYTES) -> None:
    """Rewrite files of less than ``below`` bytes into larger ones, without rows marked deleted.

    Also rewrites files with more than ``DELETED_SHARE`` of their rows marked, if two of them are
    small enough to become one.
    """
    spark.conf.set(REWRITTEN_BELOW, str(below))
    _rewrite(spark, f"OPTIMIZE {spark_delta(path)}", metadata)


def purge(spark: SparkSession, path: str, metadata: str) -> None:
    """Rewrite each file that has rows marked deleted without these rows, even one large file."""
    _rewrite(spark, f"REORG TABLE {spark_delta(path)} APPLY (PURGE)", metadata)


def _rewrite(spark: SparkSession, command: str, metadata: str) -> None:
    for name, value in {**OPTIMIZE_SETTINGS, METADATA_CONF: metadata}.items():
        spark.conf.set(name, value)
    reach(Failpoint.BEFORE_OPTIMIZE)
    spark.sql(command).collect()
    reach(Failpoint.AFTER_OPTIMIZE)


def expire(
    spark: SparkSession, path: str, metadata: str, places: Mapping[str, tuple[int, int]]
) -> None:
    """Delete the events of each topic up to a landing, in one commit.

    ``places`` maps a topic to landing and offset (cdc/lake/records/expiry.py).
    """
    spark.conf.set(METADATA_CONF, metadata)
    conditions = [
        f"(topic = {spark_string(topic)} AND landing <= {landing:d})"
        for topic, (landing, _) in places.items()
    ]
    reach(Failpoint.BEFORE_LOG_EXPIRY)
    spark.sql(f"DELETE FROM {spark_delta(path)} WHERE {' OR '.join(conditions)}").collect()  # noqa: S608
    reach(Failpoint.AFTER_LOG_EXPIRY)


def vacuum(spark: SparkSession, path: str, metadata: str) -> None:
    """Delete files that no version within the retention needs; adds two commits without rows.

    The retention is a property of the table (``keep``). RETAIN would be rounded to hours, and zero
    hours would delete every old file.
    """
    # The session may hold no position yet, or an old one.
    spark.conf.set(METADATA_CONF, metadata)
    for name, value in VACUUM_SETTINGS.items():
        spark.conf.set(name, value)
    spark.sql(f"VACUUM {spark_delta(path)}").collect()
