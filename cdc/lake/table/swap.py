"""Replaces one table with another, even if the old one is unreadable."""

from collections.abc import Callable
from typing import Any

import structlog
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.structure import Structure
from cdc.failpoints import Failpoint, reach
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.table import store
from cdc.lake.table.positions import Position, open_table

logger = structlog.get_logger(__name__)


def swap(
    spark: SparkSession,
    made: str,
    path: str,
    *,
    schema: TableSchema,
    position: Position,
    structure: Structure | None,
    broken: str,
    going_on: Callable[[], None],
) -> str:
    """Replace the table at ``path`` with the rows of the one at ``made``, in one commit.

    A directory whose Delta log cannot be read is first moved to ``broken``; readers find no table
    until the commit. Returns a note that says so, otherwise an empty string. ``spark`` must not be
    the session of another table. ``going_on`` raises if the run is ending: the table may only seem
    unreadable then, because the read was cancelled.
    """
    rows = store.read(spark, made)
    try:
        store.replace(spark, path, rows, schema, position, structure)
    except (PySparkException, Py4JJavaError):
        if is_readable(spark, path):
            raise
    # Delta may have committed from its cached state of a log that nobody else can read.
    if is_readable(spark, path):
        return ""
    going_on()
    _move(spark, path, broken)
    store.replace(spark, path, rows, schema, position, structure)
    return f"the old table could not be read; it was moved to {broken}"


def is_readable(spark: SparkSession, path: str) -> bool:
    """Return whether both Spark and delta-rs, which caches nothing, can open the table.

    No data is read. Raises StoreError where the store does not answer: nobody knows then.
    """
    try:
        table = open_table(path)
        store.read(spark, path)
    except (PySparkException, Py4JJavaError, DeltaError, OSError, ValueError) as error:
        refuse_silence(error)
        return False
    return table is not None


def _move(spark: SparkSession, path: str, to: str) -> None:
    source, files = _place(spark, path)
    target, _ = _place(spark, to)
    logger.warning("table moved aside", path=path, to=to)
    files.mkdirs(target.getParent())
    reach(Failpoint.BEFORE_BROKEN_MOVE)
    if not files.rename(source, target):
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"the table at {path} cannot be read, and its directory cannot be moved away",
            remedy="move the directory away by hand, and run the command again",
        )
    reach(Failpoint.AFTER_BROKEN_MOVE)


def _place(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the path and its file system, both objects of the JVM."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Spark's file systems
    context: Any = spark._jsc  # noqa: SLF001
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place, place.getFileSystem(context.hadoopConfiguration())
