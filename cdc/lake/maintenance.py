"""Compaction: when rewriting small files pays, and the commands that do it.

Each table is maintained by the thread that writes it, between two of its commits: open-source
Delta has no row-level concurrency, so a second writer would abort merges. Every commit made
here carries the table's position on (cdc.lake.progress).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.failpoints import Failpoint, reach
from cdc.lake.progress import METADATA_CONF, open_table
from cdc.lake.store import at, set_properties

SMALL_BYTES: Final = 32 * 1024 * 1024
TARGET_BYTES: Final = 128 * 1024 * 1024
KEEPS: Final = {
    "delta.logRetentionDuration": 30 * 24,
    "delta.deletedFileRetentionDuration": 7 * 24,
}
"""What Delta keeps by itself, in hours: commits to open versions by, marks of removed files."""
logger = structlog.get_logger(__name__)
OPTIMIZE_SETTINGS: Final[dict[str, str]] = {
    # Only small files are rewritten: the default of 1 GB rewrites the whole table every time.
    "spark.databricks.delta.optimize.minFileSize": str(SMALL_BYTES),
    "spark.databricks.delta.optimize.maxFileSize": str(TARGET_BYTES),
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
        self._vacuumed_at = clock()

    def committed(self, session: SparkSession, metadata: str) -> None:
        """Compact the table when it pays; ``metadata`` is its position, carried on."""
        self._commits += 1
        if self._commits % self._policy.maintain_every_commits:
            return
        found = files(self._path)
        if worth_optimizing(found, self._policy.optimize_small_files):
            optimize(session, self._path, metadata)
            logger.info("optimized", path=self._path, small_files=found.small)
        if self._clock() - self._vacuumed_at >= self._policy.vacuum_every_hours * 3600:
            keep(session, self._path, metadata, self._policy.vacuum_retention_hours)
            vacuum(session, self._path, metadata, self._policy.vacuum_retention_hours)
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
    """Have Delta keep as long what a version needs besides its files; a commit where that changes.

    Without the commits no old version can be opened. Without the marks vacuum takes a file for
    one that was never part of the table, and goes by the time when it was written.
    """
    table = open_table(path)
    have = table.metadata().configuration if table else {}
    hours = {name: max(least, math.ceil(retention_hours)) for name, least in KEEPS.items()}
    wanted = {name: f"interval {count} hours" for name, count in hours.items()}
    usual = {name: f"interval {count} hours" for name, count in KEEPS.items()}
    if any(have.get(name, usual[name]) != value for name, value in wanted.items()):
        spark.conf.set(METADATA_CONF, metadata)
        set_properties(spark, path, wanted)


def vacuum(spark: SparkSession, path: str, metadata: str, retention_hours: float) -> None:
    """Delete files that no version within the retention needs; two commits without rows tell of it.

    Delta itself refuses less than a week unless told otherwise; the retention of the
    configuration is the operator's word, so the check is off.
    """
    # Nothing else may have set it in this session, or something that lies back.
    spark.conf.set(METADATA_CONF, metadata)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    reach(Failpoint.BEFORE_VACUUM)
    spark.sql(f"VACUUM {at(path)} RETAIN {retention_hours} HOURS").collect()
    reach(Failpoint.AFTER_VACUUM)
