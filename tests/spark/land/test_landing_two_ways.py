"""A small landing is the same landing, and the same rows of the log, as one by Spark."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from cdc.config import Job
from cdc.lake.commit.appender import Appender
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.table.positions import LandedPosition, landed_position
from cdc.land.landing import Landing
from cdc.land.log_table import create_log
from cdc.land.micro_batches import MicroBatch
from cdc.land.query import Lander, LandingHooks
from tests.spark.recorded_pipeline import events, landed_topics, small

pytestmark = pytest.mark.spark
BEGIN = LandedPosition(epoch=1, landing=4, offsets={}, topic_ids={"t": "id"})
ODD = (
    None,
    b"",
    b"\x00",
    b"\x00\x00\x00\x00\x07",
    b"\x00\x00\x00\x00\x07x",
    b"\x01\x00\x00\x00\x07x",
    b"\x00\xff\xff\xff\xffx",
    b"\x00\x7f\xff\xff\xffx",
    b"\x00\x80\x00\x00\x00x",
)


def odd_records() -> list[dict[str, Any]]:
    """Return recorded events and messages that are hardly frames."""
    odd = [
        {
            "topic": "odd",
            "partition": 0,
            "offset": offset,
            "key": None if message is None else base64.b64encode(message).decode(),
            "value": None if message is None else base64.b64encode(message).decode(),
            "timestamp": -1 if offset else 1_000_000_000_123,
            "headers": [["h", ""], ["", "AA=="]][:offset],
        }
        for offset, message in enumerate(ODD)
    ]
    return [*landed_topics(), *odd]


class Landed:
    """Holds the log after two landings."""

    def __init__(self, spark: SparkSession, log: Path, *, in_memory: bool) -> None:
        self.log, self.landings = log, list[Landing]()
        create_log(spark, str(log), BEGIN)
        hooks = LandingHooks(landed=self.landings.append, look=lambda _: None)
        lander = Lander(spark, str(log), BEGIN, Job(), notes_topic="odd", hooks=hooks)
        records = odd_records()
        for part in (records[:40], [], records[40:]):
            lander.land(events(spark, part), small(part) if in_memory else None)
        self.position = lander.position
        self.rows: list[Row] = (
            spark.read.format("delta").load(str(log)).drop("landed_at").orderBy("topic", "offset")
        ).collect()

    def entries(self) -> list[dict[str, Any]]:
        paths = sorted((self.log / "_delta_log").glob("*.json"))
        return [
            {
                name: action
                for line in path.read_text().splitlines()
                for name, action in json.loads(line).items()
            }
            for path in paths
        ]


@pytest.fixture
def two_ways(spark: SparkSession, tmp_path: Path) -> tuple[Landed, Landed]:
    return (
        Landed(spark, tmp_path / "spark", in_memory=False),
        Landed(spark, tmp_path / "here", in_memory=True),
    )


def test_log_and_landings_are_the_same(two_ways: tuple[Landed, Landed]) -> None:
    spark, here = two_ways

    assert here.rows == spark.rows
    assert here.landings == spark.landings
    assert here.position == spark.position == landed_position(str(here.log))
    assert [landing.events for landing in spark.landings] == [None, None]
    assert [len(landing.events) for landing in here.landings if landing.events] == [
        landing.count for landing in spark.landings
    ]
    for by_spark, by_us in zip(spark.entries()[1:], here.entries()[1:], strict=True):
        assert json.loads(by_us["add"]["stats"]) == {
            **json.loads(by_spark["add"]["stats"]),
            "tightBounds": True,
        }
        same = ("operation", "operationParameters", "readVersion", "isBlindAppend")
        assert [by_us["commitInfo"][n] for n in same] == [by_spark["commitInfo"][n] for n in same]
        positions = [json.loads(info["commitInfo"]["userMetadata"]) for info in (by_us, by_spark)]
        assert positions[0] == positions[1]
    assert [entry["commitInfo"]["engineInfo"] for entry in here.entries()[1:]] == ["wal2lake"] * 2


def test_spark_appends_the_rows_in_memory_where_this_process_may_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise TakeMergeError("a reason")

    expected = Landed(spark, tmp_path / "here", in_memory=True)
    monkeypatch.setattr(Appender, "append", refused)

    landed = Landed(spark, tmp_path / "spark", in_memory=True)

    assert landed.rows == expected.rows
    assert landed.landings == expected.landings
    assert landed.position == expected.position
    assert all(landing.events is not None for landing in landed.landings)


@pytest.mark.parametrize("exact", [True, False])
def test_a_batch_is_read_here_if_it_is_known_where_it_begins(
    spark: SparkSession, tmp_path: Path, exact: bool
) -> None:
    records = landed_topics()
    offsets = {"t": range(3, 3 + len(records))}
    asked = list[object]()

    def read(ranges: object) -> pa.Table:
        asked.append(ranges)
        return events(spark, records).toArrow()

    create_log(spark, str(tmp_path), BEGIN)
    hooks = LandingHooks(landed=lambda _: None, look=lambda _: None, read=read)
    lander = Lander(spark, str(tmp_path), BEGIN, Job(), notes_topic="notes", hooks=hooks)

    lander.land(events(spark, records), MicroBatch(ranges=offsets, exact=exact))

    assert asked == ([offsets] if exact else [])
    assert spark.read.format("delta").load(str(tmp_path)).count() == len(records)
