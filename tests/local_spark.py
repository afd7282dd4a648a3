"""Runs a small Spark session with the job's own settings, for tests of DataFrame code."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cdc.lake.session import LOCAL, SETTINGS, end, for_own_jvm
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import spark_jars

_ONE_COMPILER: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""With one compiler, Java reserves a fifth of that and stops compiling when it is full."""
_FEW_COLLECTIONS: Final = "-XX:NewSize=384m -XX:MetaspaceSize=256m"
"""By default the young generation is so small that it is collected several times a second, and the
whole heap is collected four times while Spark loads its classes."""
QUICK: Final = {"spark.driver.extraJavaOptions": f"{_ONE_COMPILER} {_FEW_COLLECTIONS}"}
"""A test's plans are all new ones: most of what the second compiler makes of them is never run
again, and it takes a quarter of the processor's time. Not where a figure is measured."""
INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For the test's own few rows nothing is compiled; the sessions of tables choose by themselves."""


@contextmanager
def local_spark(scratch: Path) -> Iterator[SparkSession]:
    """Yield a local session whose files are under ``scratch``; its JVM ends with it.

    It maps the classes of the job's archive, or leaves one to others.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = spark_jars()
    archive = class_archive.archive("job", class_archive.spark_class_path(jars))
    session = _built(scratch, jars, archive.flags)
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    yield session
    if SparkContext._active_spark_context is session.sparkContext:  # nobody has ended it since
        end(session)
        archive.settle()
    archive.give_up()


def _built(scratch: Path, jars: Sequence[Path], java_options: Iterable[str]) -> SparkSession:
    builder = (
        SparkSession.builder.appName("tests")
        .master("local[2]")
        .config("spark.driver.memory", "1500m")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )
    settings = for_own_jvm({**SETTINGS, **LOCAL}, jars, java_options)
    for name, value in {**settings, **QUICK}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def frame_of(spark: SparkSession, rows: Sequence[Sequence[Any]], columns: str) -> DataFrame:
    """Return rows as a DataFrame; ``columns`` are listed as in ``CREATE TABLE``.

    Rows in a list would be brought to Spark by a Python process of their own, at every use.
    """
    schema = to_arrow_schema(cast("StructType", StructType.fromDDL(columns)))
    values = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return spark.createDataFrame(pa.table(arrays, schema=schema), columns)
