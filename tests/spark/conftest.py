"""One small Spark session for all tests of DataFrame code, with the job's own settings."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cdc.lake.session import SETTINGS
from cdc.stack.artifacts import spark_jars


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    scratch = tmp_path_factory.mktemp("spark")
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
