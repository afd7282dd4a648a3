"""One small Spark session for all tests of DataFrame code."""

import gc
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.local_spark import local_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(autouse=True)
def forgotten(spark: SparkSession) -> Iterator[None]:
    """What is kept of a test's tables does not stay in the heap that all tests share.

    Spark keeps what was persisted, Delta the state of each table for an hour, and Python the
    handles of both until it looks for cycles: after a hundred tests the heap was full of them.
    """
    yield
    gc.collect()
    spark.catalog.clearCache()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
