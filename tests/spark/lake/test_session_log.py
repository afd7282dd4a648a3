"""Spark's own log reports where something failed, but no value of a row."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from cdc.lake.session_log import quieten
from cdc.observe.defects import error_text, traceback_of

pytestmark = pytest.mark.spark

CANARY: Final = "canary-7f3a"


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "spark.log"
    quieten(spark, tmp_path, to=path)
    yield path
    jvm: Any = spark._jvm
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure()


def rows(spark: SparkSession) -> DataFrame:
    """Return rows with a value that the planner does not know."""
    part = F.when(F.col("id") == 7, CANARY).otherwise("2020")
    return spark.range(0, 20, 1, 2).select(part.alias("text"))


def _cast(spark: SparkSession, _folder: Path) -> None:
    rows(spark).selectExpr("cast(text AS int) AS number").collect()


def _date(spark: SparkSession, _folder: Path) -> None:
    rows(spark).selectExpr("cast(text AS timestamp) AS at").collect()


def _raised(spark: SparkSession, _folder: Path) -> None:
    rows(spark).selectExpr("if(text = '2020', '', raise_error(text))").collect()


def _merge_twice(spark: SparkSession, folder: Path) -> None:
    """Violate a constraint of a table: Delta's message quotes the row's values."""
    path = str(folder / "table")
    spark.createDataFrame([("x",)], "text string").write.format("delta").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT short CHECK (length(text) < 5)")
    rows(spark).write.format("delta").mode("append").save(path)


def _streamed(spark: SparkSession, folder: Path) -> None:
    def fail(_rows: DataFrame, _number: int) -> None:
        raise ValueError(CANARY)

    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = stream.writeStream.foreachBatch(fail)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.awaitTermination()


@pytest.mark.parametrize("failing", [_cast, _date, _raised, _merge_twice, _streamed])
def test_an_engine_s_error_is_logged_without_the_row(
    spark: SparkSession,
    tmp_path: Path,
    log: Path,
    failing: Callable[[SparkSession, Path], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        failing(spark, tmp_path)
    assert CANARY in str(caught.value), "the error has to contain the value"

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(line.get("raised_at") for line in lines), "the log says where it failed"
    assert CANARY not in log.read_text()
    assert CANARY not in "".join(capfd.readouterr())
    assert CANARY not in error_text(caught.value)
    assert CANARY not in traceback_of(caught.value)
    assert "org.apache.spark" in error_text(caught.value)


def test_a_plan_that_is_too_long_to_be_shown_is_no_warning(spark: SparkSession, log: Path) -> None:
    """Spark says it once a session, and without its message the line says nothing."""
    jvm: Any = spark._jvm
    manager = jvm.org.apache.logging.log4j.LogManager
    manager.getLogger("org.apache.spark.util.SparkStringUtils").warn("Truncated")
    assert log.read_text() == ""

    manager.getLogger("org.apache.spark.util.Utils").warn("anything else")
    assert "Utils" in log.read_text()
