"""One table put in the place of another, also where nothing readable is in that place."""

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
    """Put the rows of the table at ``made`` in the place of the one at ``path``, in one commit.

    A directory whose Delta log cannot be read is moved to ``broken`` before, and the answer says
    so: until the commit readers find no table. ``spark`` is no other table's session.
    ``going_on`` raises where the run ends: what cannot be read then may only be cancelled.
    """
    rows = store.read(spark, made)
    try:
        store.replace(spark, path, rows, schema, position, structure)
    except (PySparkException, Py4JJavaError):
        if is_readable(spark, path):
            raise
    # Delta may have gone on from what it remembers of a log that nobody else can read.
    if is_readable(spark, path):
        return ""
    going_on()
    _move(spark, path, broken)
    store.replace(spark, path, rows, schema, position, structure)
    return f"what was there could not be read and is now at {broken}"


def is_readable(spark: SparkSession, path: str) -> bool:
    """By Spark and by delta-rs, which remembers nothing; no data is read."""
    try:
        found = open_table(path)
        store.read(spark, path)
    except (PySparkException, Py4JJavaError, DeltaError, OSError, ValueError):
        return False
    return found is not None


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
            remedy="move it away by hand, and ask again",
        )
    reach(Failpoint.AFTER_BROKEN_MOVE)


def _place(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The path, and the file system that it is of: objects of the JVM."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to the file systems that Spark knows
    context: Any = spark._jsc  # noqa: SLF001
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place, place.getFileSystem(context.hadoopConfiguration())
