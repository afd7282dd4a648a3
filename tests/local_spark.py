"""A small Spark session with the job's own settings, for tests of DataFrame code."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from cdc.lake.session import SETTINGS
from cdc.stack.artifacts import spark_jars


@contextmanager
def local_spark(scratch: Path) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName("tests")
        .master("local[2]")
        .config("spark.jars", ",".join(str(jar) for jar in spark_jars()))
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
