"""Provide one small Spark session for all tests of DataFrame code."""

import gc
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.local_spark import local_spark


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start a JVM, which a run of the unit tests must not."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        # What there is now stays: the collection after each test need not look through it.
        gc.collect()
        gc.freeze()
        yield session


@pytest.fixture(autouse=True)
def clear_caches(spark: SparkSession) -> Iterator[None]:
    """Clear the caches after each test, because all tests share one heap.

    Spark keeps persisted frames, Delta the state of each table for an hour, and Python the handles
    of both until it collects cycles: after a hundred tests the heap was full of them.
    """
    yield
    gc.collect()
    spark.catalog.clearCache()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
