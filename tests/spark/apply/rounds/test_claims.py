"""No cut includes an edited table's new version, nor a transaction that lacks events."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.state import requests
from cdc.state.requests import Request
from tests.spark.recorded_pipeline import (
    ORDERS,
    PREFIX,
    TABLES,
    Pipeline,
    assert_equal_to_source,
    landed_topics,
)

pytestmark = pytest.mark.spark

TOPIC = ORDERS.table.topic(PREFIX)


def entry(row: LedgerRow | None) -> TableEntry:
    orders = row.entry(str(ORDERS.table)) if row else None
    assert orders is not None
    return orders


@pytest.mark.parametrize("more", [True, False], ids=["with changes of it", "with none"])
def test_a_table_that_somebody_else_wrote_to_stays_at_the_last_good_version(
    spark: SparkSession, tmp_path: Path, more: bool
) -> None:
    records = landed_topics()
    mine = [i for i, r in enumerate(records) if r["topic"] == TOPIC]
    place = mine[len(mine) // 2] if more else mine[-1] + 1
    pipeline = Pipeline(spark, tmp_path)
    pipeline.land(records[:place])
    pipeline.settle()
    good = entry(pipeline.ledger.last())
    before = pipeline.rows(ORDERS)

    # In a new session: one of the job's may still mark its commits as ours.
    other = spark.newSession()
    other.sql(f"UPDATE delta.`{tmp_path}/{ORDERS.table.name}` SET id = id + 1000")
    pipeline.land(records[place:])
    pipeline.settle()

    now = entry(pipeline.ledger.last())
    assert (now.state, now.version) == ("stopped", good.version)
    assert f"version {good.version + 1} of" in now.reason
    assert "was not written by wal2lake" in now.reason
    states = {table.schema.table: table.stopped for table in pipeline.tables.by_topic.values()}
    assert states == {schema.table: schema is ORDERS for schema in TABLES}
    published = spark.read.format("delta").option("versionAsOf", good.version)
    assert published.load(f"{tmp_path}/{ORDERS.table.name}").count() == len(before)


def test_an_incomplete_transaction_is_in_no_cut_and_raises_an_alarm(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = landed_topics()
    last = [i for i, r in enumerate(records) if r["topic"] == TOPIC][-1]
    pipeline = Pipeline(spark, tmp_path, patience=0)
    pipeline.land(records[:last] + records[last + 1 :])
    pipeline.settle()

    held = entry(pipeline.ledger.last())
    assert held.offset < records[last]["offset"]
    assert f"events in {TOPIC}" in pipeline.rounds.alarm
    turns = pipeline.rounds.turns
    assert not pipeline.rounds.round()
    assert pipeline.rounds.turns == turns  # it waits for the missing event

    pipeline.land([records[last]])
    pipeline.settle()

    assert pipeline.rounds.alarm == ""
    assert pipeline.rounds.turns > turns
    turns = pipeline.rounds.turns
    for bound in (None, 1 << 62):  # the first blocks all cuts; the cut of the second is yet to come
        folder = tmp_path / "requests"
        requests.write(folder, Request(id="r", expires_at=time.time() + 3600, bound=bound))
        assert not pipeline.rounds.round()
        assert pipeline.rounds.turns == turns
        requests.remove(folder, "r")
    assert not pipeline.rounds.round()
    assert pipeline.rounds.turns == turns + 1  # a round with nothing left to do counts as a turn
    assert pipeline.tables.merging == ()
    assert entry(pipeline.ledger.last()).offset == records[last]["offset"]
    assert_equal_to_source(pipeline)
