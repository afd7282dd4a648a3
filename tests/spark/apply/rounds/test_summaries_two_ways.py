"""Summaries made in memory are those that Spark makes, also of broken bytes."""

import base64
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc.apply.rounds import spark_summary
from cdc.apply.rounds.local_summary import LocalSummaries
from cdc.apply.rounds.rounds import Rounds
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.event_applier import Stretch
from cdc.land.log_table import log_rows
from tests.spark.recorded_pipeline import (
    MARKERS,
    PREFIX,
    RECORDED,
    SCHEMAS,
    Pipeline,
    assert_equal_to_source,
    events,
    landed_topics,
)

pytestmark = pytest.mark.spark


def broken(records: list[dict[str, Any]], random: Random) -> list[dict[str, Any]]:
    """Return the events several times, each with some bytes of its body changed or cut off."""
    found: list[dict[str, Any]] = []
    for record in records * 30:
        if record["topic"] == MARKERS or record["value"] is None:
            continue
        body = bytearray(base64.b64decode(record["value"]))
        for _ in range(random.randrange(3)):
            body[random.randrange(5, len(body))] = random.randrange(256)
        if random.random() < 0.3:
            del body[random.randrange(6, len(body)) :]
        value = base64.b64encode(bytes(body)).decode()
        found.append({**record, "offset": 1000 + len(found), "value": value})
    return found


def test_summaries_are_the_same_both_ways(spark: SparkSession) -> None:
    known = {number: text for number, text in SCHEMAS.items() if number != 131}
    records = RECORDED["records"]
    parts = {1: records[::2], 2: records[1::2], 3: broken(records, Random(3))}
    frames = [log_rows(events(spark, part), number) for number, part in parts.items()]
    rows = frames[0].union(frames[1]).union(frames[2]).persist()

    by_spark = spark_summary.summaries(rows, known, marker_topic=MARKERS, prefix=PREFIX)
    local = LocalSummaries(MARKERS, PREFIX)
    here = {}
    landed = rows.toArrow()
    for number in parts:
        mine = landed.filter(pa.compute.equal(landed["landing"], number))
        here[number] = local.summary(mine, known)

    for number in parts:
        assert set(here[number].groups) == set(by_spark[number].groups), number
        assert here[number].ends == list(by_spark[number].ends)
    assert any(group.undecodable for group in here[3].groups)
    assert any(not group.undecodable for group in here[3].groups)


def test_a_round_without_tables_that_ask_spark_starts_no_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply(_table: AppliedTable, stretch: Stretch) -> None:
        assert stretch.mine.events is not None
        assert len(stretch.mine.events)

    pipeline = Pipeline(spark, tmp_path)
    pipeline.land(landed_topics())
    with monkeypatch.context() as patched:
        patched.setattr(AppliedTable, "apply", apply)
        before = jobs(spark)

        pipeline.settle()

        assert jobs(spark) == before
    last = pipeline.ledger.last()
    assert last is not None
    assert last.lsn is not None


def jobs(spark: SparkSession) -> int:
    """Return how many jobs were started."""
    java: Any = spark.sparkContext
    return int(java._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize(
    ("in_memory", "landed"), [(True, 12), (False, 36)], ids=["in memory", "by Spark"]
)
def test_no_event_is_decoded_twice_to_find_cuts(
    spark: SparkSession, tmp_path: Path, in_memory: bool, landed: int
) -> None:
    """Also where a landing has the events of several rounds."""
    records = landed_topics()
    some = {"budget": landed // 3, "few": len(records)}
    pipeline = Pipeline(spark, tmp_path, in_memory=in_memory, **some)
    for begin in range(0, len(records), landed):
        pipeline.land(records[begin : begin + landed])
        pipeline.settle()

    assert_equal_to_source(pipeline)
    assert decoded(pipeline.rounds) <= len(records)


def decoded(rounds: Rounds) -> int:
    return rounds._finder.events_decoded
