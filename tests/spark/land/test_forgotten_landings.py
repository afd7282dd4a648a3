"""Events of a topic are deleted from the log between two landings, and it continues after them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.lake.table.positions import LandedPosition, landed_position
from cdc.lake.upkeep.erasure import delete_older
from cdc.land.log_table import create_log
from cdc.land.query import Lander, LandingHooks
from tests.masked.traces import files_with
from tests.spark.recorded_pipeline import events, small

pytestmark = pytest.mark.spark
BEGIN = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
SECRET = "SECRET7f3a"
ENCODED = {"SECRET": "U0VDUkVUN2YzYQ==", "KEPT": "S0VQVA=="}  # base64


def record(topic: str, offset: int, value: str = "KEPT") -> dict[str, Any]:
    plain = {"partition": 0, "key": "aw==", "timestamp": 1, "headers": []}
    return {**plain, "topic": topic, "offset": offset, "value": ENCODED[value]}


class Log:
    """A log with a landing of two topics, one of which has a secret."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        create_log(spark, str(path), BEGIN)
        hooks = LandingHooks(landed=lambda _: None, look=lambda _: None)
        # Every landing begins with combining, which reads what is to be forgotten.
        policy = Job(maintain_every_commits=1, optimize_small_files=2)
        self.lander = Lander(spark, str(path), BEGIN, policy, notes_topic="n", hooks=hooks)
        self.land(record("a", 0, "SECRET"), record("b", 0))
        self.land(record("a", 1, "SECRET"))

    def land(self, *records: dict[str, Any]) -> None:
        self.lander.land(events(self.spark, [*records]), small([*records]))

    def rows(self) -> list[tuple[str, int]]:
        found = self.spark.read.format("delta").load(str(self.path)).orderBy("topic", "offset")
        return [(row["topic"], row["offset"]) for row in found.collect()]


def test_no_byte_of_a_forgotten_event_is_left_in_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log(spark, tmp_path / "log")
    assert files_with(tmp_path, SECRET)

    since = log.lander.after_landing(lambda: log.lander.forget({"a": (2, 1)}, {"a": 4}))
    assert not since.done()
    log.land(record("b", 1))
    deleted = log.lander.after_landing(lambda: delete_older(str(log.path), since.result(0)))
    log.land(record("a", 5), record("b", 2))

    assert deleted.result(0) > 0
    assert files_with(tmp_path, SECRET) == []
    assert log.rows() == [("a", 5), ("b", 0), ("b", 1), ("b", 2)]
    position = landed_position(str(log.path))
    assert position == log.lander.position
    assert (position.offsets, position.expired) == ({"a": 5, "b": 2}, {"a": (2, 1)})


def test_the_log_continues_after_what_kafka_has_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The next landing's commit says so, though it has no event of the topic."""
    log = Log(spark, tmp_path / "log")
    log.lander.after_landing(lambda: log.lander.forget({"a": (2, 1)}, {"a": 4}))
    log.land(record("b", 1))
    log.land(record("b", 2))

    position = landed_position(str(log.path))

    assert position is not None
    assert position.offsets == {"a": 4, "b": 2}


def test_an_action_that_fails_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    asked = log.lander.after_landing(partial(int, "no number"))

    with pytest.raises(ValueError, match="no number"):
        log.land(record("b", 1))

    assert isinstance(asked.exception(0), ValueError)
    assert DeltaTable(str(log.path)).version() > 0
