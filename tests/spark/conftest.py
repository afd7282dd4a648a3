"""One small Spark session for all tests of DataFrame code."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.local_spark import local_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
