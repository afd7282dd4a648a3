"""Tables with few events are applied by the job itself, however many another table has."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.apply.rounds import log_slice
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
COUNTS = Counter(record["topic"] for record in landed_topics())
MOST = sorted(COUNTS[schema.table.topic(PREFIX)] for schema in TABLES)[-2]


def ways(pipeline: Pipeline) -> dict[str, bool]:
    """Return whether the job has applied the last batch of each table itself."""
    return {topic: table.way == DRIVER for topic, table in pipeline.tables.by_topic.items()}


def test_only_tables_with_many_events_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, tmp_path, in_memory=False, few=MOST)
    records = landed_topics()

    pipeline.land(records[:30])
    pipeline.land(records[30:])
    pipeline.settle()

    few = {topic: COUNTS[topic] <= MOST for topic in ways(pipeline)}
    assert ways(pipeline) == few
    assert set(few.values()) == {True, False}
    assert_equal_to_source(pipeline)


def test_what_is_too_large_for_memory_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, records = Pipeline(spark, tmp_path, in_memory=False, few=MOST), landed_topics()
    pipeline.land(records)
    after = dict.fromkeys(COUNTS, -1)

    found = log_slice.few_rows(pipeline.log, pipeline.inbox.waiting(), after, MOST)
    monkeypatch.setattr(read_back, "MOST_BYTES", 1)

    assert found is not None
    assert Counter(found.events["topic"].to_pylist()) == {t: COUNTS[t] for t in found.topics}
    assert log_slice.few_rows(pipeline.log, pipeline.inbox.waiting(), after, MOST) is None
