"""A table that an operation gives back is brought to the last cut without Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.land import read_back
from cdc.state.pace import DRIVER
from tests.spark.recorded_pipeline import (
    PREFIX,
    TABLES,
    Pipeline,
    assert_equal_to_source,
    landed_topics,
)

pytestmark = pytest.mark.spark
TOPICS = [schema.table.topic(PREFIX) for schema in TABLES]


def spark_jobs(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.fixture
def away(spark: SparkSession, tmp_path: Path) -> Pipeline:
    """Return a pipeline in which every table waits behind the last cut, as during a reading."""
    pipeline, records = Pipeline(spark, tmp_path), landed_topics()
    pipeline.land(records[: len(records) // 2])
    pipeline.settle()
    for topic in TOPICS:
        pipeline.freezer.freeze(topic)
    pipeline.recovery.resume()
    before = {topic: table.position.offset for topic, table in pipeline.tables.by_topic.items()}
    pipeline.land(records[len(records) // 2 :])
    pipeline.settle()
    for topic, table in pipeline.tables.by_topic.items():
        assert table.frozen
        assert table.position.offset == before[topic]
    ends = pipeline.publisher.last.offsets
    assert sum(ends[topic] > before[topic] for topic in TOPICS) > 1
    return pipeline


def come_back(pipeline: Pipeline) -> None:
    for topic in TOPICS:
        pipeline.freezer.thaw(topic)
    pipeline.recovery.resume()
    for topic, table in pipeline.tables.by_topic.items():
        assert table.following
        assert table.position.offset == pipeline.publisher.last.offsets[topic]


def test_a_few_events_are_applied_without_spark(away: Pipeline, spark: SparkSession) -> None:
    before = spark_jobs(spark)
    come_back(away)
    assert spark_jobs(spark) == before
    assert {table.way for table in away.tables.by_topic.values()} == {DRIVER}
    assert_equal_to_source(away)


def test_many_events_are_left_to_spark(
    away: Pipeline, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_back, "MOST_RECORDS", 0)
    before = spark_jobs(spark)
    come_back(away)
    assert spark_jobs(spark) > before
    assert_equal_to_source(away)
