"""Runs a Spark session with the job's settings, for a benchmark without the job."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from cdc.lake.session import LOCAL, SETTINGS, end
from cdc.stack.artifacts.lock_file import spark_jars

CORES: Final = 2


@contextmanager
def session(
    scratch: Path, heap: str, jars: Sequence[Path] = (), conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Run a local session on two cores; its files are under ``scratch``."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName("bench")
        .master(f"local[{CORES}]")
        .config("spark.jars", ",".join(str(jar) for jar in (*spark_jars(), *jars)))
        .config("spark.driver.memory", heap)
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )
    for name, value in {**SETTINGS, **LOCAL, "spark.log.level": "ERROR", **(conf or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        end(spark)  # the next may need another heap or other jars
