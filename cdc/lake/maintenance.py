"""Compaction: when rewriting small files pays, and the commands that do it.

Each table is maintained by the thread that writes it, between two of its commits: open-source
Delta has no row-level concurrency, so a second writer would abort merges. Every commit made
here carries the table's position on (cdc.lake.progress).
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import is_local
from cdc.lake.progress import METADATA_CONF, open_table
from cdc.lake.store import at, set_properties
from cdc.lake.transaction_log import clean

SMALL_BYTES: Final = 32 * 1024 * 1024
TARGET_BYTES: Final = 128 * 1024 * 1024
HOUR: Final = 3600
LOG_KEPT: Final = "delta.logRetentionDuration"
FILES_KEPT: Final = "delta.deletedFileRetentionDuration"
CLEANED_BY_DELTA: Final = "delta.enableExpiredLogCleanup"
USUAL: Final = {
    LOG_KEPT: "interval 2592000 seconds",
    FILES_KEPT: "interval 604800 seconds",
    CLEANED_BY_DELTA: "true",
}
"""What Delta takes where a table says nothing."""
logger = structlog.get_logger(__name__)
OPTIMIZE_SETTINGS: Final[dict[str, str]] = {
    # Only small files are rewritten: the default of 1 GB rewrites the whole table every time.
    "spark.databricks.delta.optimize.minFileSize": str(SMALL_BYTES),
    "spark.databricks.delta.optimize.maxFileSize": str(TARGET_BYTES),
}
VACUUM_SETTINGS: Final[dict[str, str]] = {
    # So many tasks list the files; the default of 10,000 takes longer than the listing.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The data files of one version of a table."""

    count: int
    small: int
    bytes: int


def files(path: str) -> Files:
    """Data files of the newest version; no data is read."""
    table = open_table(path)
    if table is None:
        return Files(count=0, small=0, bytes=0)
    sizes = pa.table(table.get_add_actions(flatten=True)).column("size_bytes")
    small = pc.sum(pc.less(sizes, SMALL_BYTES)).as_py() or 0
    return Files(count=len(sizes), small=small, bytes=pc.sum(sizes).as_py() or 0)


def worth_optimizing(found: Files, small_files: int) -> bool:
    """Whether so many small files lie there that one rewrite saves more opens than it costs."""
    return found.small >= small_files


class Maintainer:
    """Looks after one table; called after each of its commits, by the thread that made it."""

    def __init__(self, path: str, policy: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._policy = policy
        self._clock = clock
        self._commits = 0
        every = policy.vacuum_every_hours * HOUR
        # A job that never lives that long looks too, but not at each of its starts.
        self._vacuumed_at = clock() - every + min(every, HOUR)

    def committed(self, session: SparkSession, metadata: str) -> None:
        """Compact the table when it pays; ``metadata`` is its position, carried on."""
        # Also after the first one: a job may never live for as many commits as that.
        looks = self._commits % self._policy.maintain_every_commits == 0
        self._commits += 1
        if not looks:
            return
        found = files(self._path)
        if worth_optimizing(found, self._policy.optimize_small_files):
            optimize(session, self._path, metadata)
            logger.info("optimized", path=self._path, small_files=found.small)
        if self._clock() - self._vacuumed_at >= self._policy.vacuum_every_hours * HOUR:
            keep(session, self._path, metadata, self._policy.vacuum_retention_hours)
            vacuum(session, self._path, metadata)
            if is_local(self._path):
                clean(self._path, self._policy.vacuum_retention_hours * HOUR)
            self._vacuumed_at = self._clock()
            logger.info("vacuumed", path=self._path)


def optimize(spark: SparkSession, path: str, metadata: str) -> None:
    """Rewrite the small files of a table into large ones, without the rows marked deleted."""
    for name, value in {**OPTIMIZE_SETTINGS, METADATA_CONF: metadata}.items():
        spark.conf.set(name, value)
    reach(Failpoint.BEFORE_OPTIMIZE)
    spark.sql(f"OPTIMIZE {at(path)}").collect()
    reach(Failpoint.AFTER_OPTIMIZE)


def keep(spark: SparkSession, path: str, metadata: str, retention_hours: float) -> None:
    """Tell Delta how long it is to keep removed files, and the commits to open their versions by.

    A commit where that changes. Vacuum goes by this property of the table.
    """
    table = open_table(path)
    have = table.metadata().configuration if table else {}
    interval = f"interval {math.ceil(retention_hours * HOUR)} seconds"
    by_delta = str(not is_local(path)).lower()
    said = {LOG_KEPT: interval, FILES_KEPT: interval, CLEANED_BY_DELTA: by_delta}
    if any(have.get(name, USUAL[name]) != text for name, text in said.items()):
        spark.conf.set(METADATA_CONF, metadata)
        set_properties(spark, path, said)


def expire(
    spark: SparkSession, path: str, metadata: str, places: Mapping[str, tuple[int, int]]
) -> None:
    """Delete what landed of each topic up to a landing (cdc/lake/expiry.py), in one commit."""
    spark.conf.set(METADATA_CONF, metadata)
    given_up = [
        f"(topic = '{topic}' AND landing <= {landing:d})" for topic, (landing, _) in places.items()
    ]
    reach(Failpoint.BEFORE_LOG_EXPIRY)
    spark.sql(f"DELETE FROM {at(path)} WHERE {' OR '.join(given_up)}").collect()  # noqa: S608
    reach(Failpoint.AFTER_LOG_EXPIRY)


def vacuum(spark: SparkSession, path: str, metadata: str) -> None:
    """Delete files that no version within the retention needs; two commits without rows tell of it.

    How long that is the table says (``keep``). RETAIN would be rounded to hours, and where that
    gives none, all would go.
    """
    # Nothing else may have set it in this session, or something that lies back.
    spark.conf.set(METADATA_CONF, metadata)
    for name, value in VACUUM_SETTINGS.items():
        spark.conf.set(name, value)
    reach(Failpoint.BEFORE_VACUUM)
    spark.sql(f"VACUUM {at(path)}").collect()
    reach(Failpoint.AFTER_VACUUM)
