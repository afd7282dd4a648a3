"""Landing and rounds lose and double nothing if they are interrupted at any failpoint.

The events are recorded ones. As after a kill, only the lake remains; tests/faults kills a real job.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.failpoints import Failpoint
from cdc.lake.records.ledger import TableEntry
from tests.spark.recorded_pipeline import (
    Pipeline,
    assert_equal_to_source,
    landed_topics,
    read_rows,
)
from tests.unit.killing import Killed, arm

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


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the failpoints, whose kill raises ``Killed`` instead."""
    return arm(tmp_path, monkeypatch)


def not_landed(pipeline: Pipeline, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records that Kafka would give a query that continues after the log."""
    landed = pipeline.lander.position.offsets
    return [r for r in records if r["offset"] > landed.get(r["topic"], -1)]


def rows_at_every_cut(pipeline: Pipeline) -> dict[tuple[int, str], int]:
    """Return the number of rows by cut and table, at the versions that the ledger names."""
    return {
        (row.cut, entry.table): count(entry)
        for row in pipeline.ledger.rows()
        for entry in row.tables
    }


def count(entry: TableEntry) -> int:
    opened = QueryBuilder().register("t", DeltaTable(entry.path, version=entry.version))
    counted = pa.table(opened.execute("SELECT count(*) AS n FROM t").read_all())
    return int(counted.column("n")[0].as_py())


@pytest.mark.parametrize(
    "when",
    [
        # A table that no cut names yet is created anew, whatever commits it has.
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
            counts = rows_at_every_cut(pipeline)
            assert published.items() <= counts.items()
            published = counts

    assert kills == 1
    assert_equal_to_source(pipeline)
    landed = read_rows(pipeline.log, 'SELECT topic, "offset" FROM t')
    places = Counter((row["topic"], row["offset"]) for row in landed)
    assert set(places.values()) == {1}
    assert len(places) == len(records)
