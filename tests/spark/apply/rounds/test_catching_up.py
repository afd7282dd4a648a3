"""A table that is behind catches up from the log: few events in this process, others by Spark."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.state.pace import DRIVER
from tests.spark.recorded_pipeline import Pipeline, assert_equal_to_source, landed_topics

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("in_memory", [pytest.param(True, marks=pytest.mark.deep), False])
def test_tables_are_made_again_from_the_log(
    spark: SparkSession, tmp_path: Path, *, in_memory: bool
) -> None:
    pipeline, records = Pipeline(spark, tmp_path), landed_topics()
    for part in (records[: len(records) // 2], records[len(records) // 2 :]):
        pipeline.land(part)
        pipeline.settle()
    for table in pipeline.tables.by_topic.values():
        shutil.rmtree(table.path)

    pipeline.rounds.close()
    pipeline.in_memory = in_memory
    pipeline.start()

    assert_equal_to_source(pipeline)
    ways = {str(t.schema.table): t.way for t in pipeline.tables.by_topic.values()}
    assert (set(ways.values()) == {DRIVER}) == in_memory, ways
