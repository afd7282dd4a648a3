"""Has Spark delete intermediate results that may hold rows of before."""

import gc
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from cdc.waiting import poll

SECONDS: Final = 30.0


def clear_scratch(spark: SparkSession, scratch: Path, before: float) -> int:
    """Delete what Spark wrote to its local directory before that time and nobody needs any more.

    Spark deletes the results of a shuffle once its JVM has collected the plan as garbage, which may
    take half an hour. Returns how many such files are left after ``SECONDS``: those of plans that
    are still in use. ``before`` is in seconds since 1970.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to the JVM
    # What Delta has of a table's log in memory was shuffled, with the statistics of all its files.
    getattr(jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()

    def left() -> int:
        gc.collect()  # a plan that Python knows of is in use
        jvm.System.gc()
        return sum(_is_older(file, before) for file in scratch.glob("blockmgr-*/*/*"))

    poll(left, lambda count: not count, every=1.0, seconds=SECONDS)
    return left()


def _is_older(file: Path, before: float) -> bool:
    try:
        return file.stat().st_mtime < before
    except FileNotFoundError:
        return False
