"""Maintains a table written by Spark: measures its files, then optimizes, purges and vacuums.

Each table is maintained by the thread that writes it, between two of its commits: open-source
Delta has no row-level concurrency, so a second writer would abort merges. Every commit made
here repeats the table's position (cdc.lake.table.positions).
"""

import math
import time
from collections.abc import Callable, Mapping
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
from cdc.lake.layout import is_local
from cdc.lake.table.positions import METADATA_CONF, file_sizes, open_table
from cdc.lake.table.store import set_properties
from cdc.lake.upkeep.small_files import SMALL_BYTES, rewritten
from cdc.lake.upkeep.transaction_log import clean

TARGET_BYTES: Final = 128 * 1024 * 1024
DELETED_SHARE: Final = 0.2
"""If a larger share of rows is marked deleted, rewriting pays however large the files are: it costs
at most five times what was deleted."""
HOUR: Final = 3600
LOG_KEPT: Final = "delta.logRetentionDuration"
FILES_KEPT: Final = "delta.deletedFileRetentionDuration"
CLEANED_BY_DELTA: Final = "delta.enableExpiredLogCleanup"
USUAL: Final = {
    LOG_KEPT: "interval 2592000 seconds",
    FILES_KEPT: "interval 604800 seconds",
    CLEANED_BY_DELTA: "true",
}
"""Delta's defaults for a table without these properties."""
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
    """The data files of one version of a table."""

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

    def __init__(self, path: str, policy: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._policy = policy
        self._clock = clock
        self._commits = 0
        every = policy.vacuum_every_hours * HOUR
        # A job that is always stopped before that time also vacuums, but not at every start.
        self._vacuumed_at = clock() - every + min(every, HOUR)

    def committed(
        self,
        session: SparkSession,
        metadata: str,
        measure: Callable[[], Files] | None = None,
    ) -> None:
        """Optimize, purge and vacuum where it pays; ``metadata`` is the position to repeat.

        ``measure`` returns the table's files, if the caller knows them; ``files`` reads the log.
        """
        # The first commit counts: a job may never make ``maintain_every_commits`` of them.
        is_due = self._commits % self._policy.maintain_every_commits == 0
        self._commits += 1
        if not is_due:
            return
        current = files(self._path) if measure is None else measure()
        if small := rewritten(current.sizes, self._policy.optimize_small_files):
            optimize(session, self._path, metadata, below=small[-1] + 1)
            logger.info("optimized", path=self._path, small_files=len(small))
        if current.deleted > DELETED_SHARE:
            purge(session, self._path, metadata)
            logger.info("purged", path=self._path, deleted=round(current.deleted, 2))
        if self._clock() - self._vacuumed_at >= self._policy.vacuum_every_hours * HOUR:
            keep(session, self._path, metadata, self._policy.vacuum_retention_hours)
            vacuum(session, self._path, metadata)
            if is_local(self._path):
                clean(self._path, self._policy.vacuum_retention_hours * HOUR)
            self._vacuumed_at = self._clock()
            logger.info("vacuumed", path=self._path)


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


def keep(spark: SparkSession, path: str, metadata: str, retention_hours: float) -> None:
    """Set how long Delta keeps removed files, and the commits that open their versions.

    Makes a commit only if the table's properties change. Vacuum uses them.
    """
    table = open_table(path)
    have = table.metadata().configuration if table else {}
    interval = f"interval {math.ceil(retention_hours * HOUR)} seconds"
    by_delta = str(not is_local(path)).lower()
    wanted = {LOG_KEPT: interval, FILES_KEPT: interval, CLEANED_BY_DELTA: by_delta}
    if any(have.get(name, USUAL[name]) != text for name, text in wanted.items()):
        spark.conf.set(METADATA_CONF, metadata)
        set_properties(spark, path, wanted)


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
    reach(Failpoint.BEFORE_VACUUM)
    spark.sql(f"VACUUM {spark_delta(path)}").collect()
    reach(Failpoint.AFTER_VACUUM)
