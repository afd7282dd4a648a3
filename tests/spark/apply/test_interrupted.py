"""The steps of landing and rounds, interrupted at each failpoint, on recorded events.

As a kill is: nothing is known afterwards but what the lake says. The real kills, of a real job, are
in tests/faults.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

import cdc.failpoints
from cdc.failpoints import Failpoint
from cdc.lake.records.ledger import TableEntry
from tests.spark.recorded_pipeline import Pipeline, assert_equal_to_source, landed_topics

pytestmark = pytest.mark.spark

FIRST_HALF, SECOND_HALF = 0, 1
POINTS = (
    Failpoint.BEFORE_LOG_APPEND,
    Failpoint.AFTER_LOG_APPEND,
    Failpoint.BEFORE_TABLE_COMMIT,
    Failpoint.AFTER_TABLE_COMMIT,
    Failpoint.BEFORE_LEDGER_APPEND,
    Failpoint.AFTER_LEDGER_APPEND,
)


class Killed(BaseException):
    """Not an Exception, so that nothing goes on over it."""


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the failpoints; this process outlives the kill."""

    def kill(_pid: int, _signal: int) -> None:
        raise Killed

    folder = tmp_path / "armed"
    folder.mkdir()
    monkeypatch.setattr(cdc.failpoints, "_DIRECTORY", str(folder))
    monkeypatch.setattr(os, "kill", kill)
    return folder


def not_landed(pipeline: Pipeline, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What Kafka would give to a query that begins where the log says."""
    landed = pipeline.lander.position.offsets
    return [r for r in records if r["offset"] > landed.get(r["topic"], -1)]


def every_table_at_every_cut(pipeline: Pipeline) -> dict[tuple[int, str], int]:
    """Number of rows, by cut and table, of the versions that the ledger names."""
    return {
        (row.cut, entry.table): count(entry)
        for row in pipeline.ledger.rows()
        for entry in row.tables
    }


def count(entry: TableEntry) -> int:
    opened = QueryBuilder().register("t", DeltaTable(entry.path, version=entry.version))
    found = pa.table(opened.execute("SELECT count(*) AS n FROM t").read_all())
    return int(found.column("n")[0].as_py())


@pytest.mark.parametrize(
    "when",
    [
        # A table that no cut names yet is made again, whatever a commit of it says.
        pytest.param((SECOND_HALF, 1), id="later"),
        pytest.param((SECOND_HALF, 2), id="second-table", marks=pytest.mark.deep),
        pytest.param((FIRST_HALF, 1), id="first-cut", marks=pytest.mark.deep),
    ],
)
@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_doubled_or_published_before_its_time(
    spark: SparkSession, tmp_path: Path, armed: Path, point: Failpoint, when: tuple[int, int]
) -> None:
    pipeline, records = Pipeline(spark, tmp_path), landed_topics()
    armed_at, passes = when
    published: dict[tuple[int, str], int] = {}
    kills = 0
    for part, upto in enumerate((len(records) // 2, len(records))):
        if part == armed_at:
            (armed / point).write_text(str(passes))
        done = False
        while not done:
            try:
                pipeline.land(not_landed(pipeline, records[:upto]))
                pipeline.settle()
                done = True
            except Killed:
                kills += 1
                pipeline.rounds.close()
                pipeline.start()
            held = every_table_at_every_cut(pipeline)
            assert published.items() <= held.items()
            published = held

    assert kills == 1
    assert_equal_to_source(pipeline)
    log = spark.read.format("delta").load(pipeline.log)
    places = Counter((row.topic, row.offset) for row in log.select("topic", "offset").collect())
    assert set(places.values()) == {1}
    assert len(places) == len(records)
