"""The log's small files become one without Spark, and nothing else of the log changes."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.lake.commit.appender import Appender
from cdc.lake.table.positions import LandedPosition, landed_position
from cdc.land import log_files
from cdc.land.arrow_rows import DELTA_TYPES, LOG_SCHEMA
from cdc.land.log_files import LogFiles
from cdc.land.log_table import create_log
from cdc.land.read_back import landings_beyond

pytestmark = pytest.mark.spark
POLICY = Job(maintain_every_commits=4, optimize_small_files=3)
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def rows(landing: int) -> pa.Table:
    """Return a landing of two events, one of them a tombstone with a header."""
    row = {
        "landing": landing,
        "topic": "t",
        "partition": 0,
        "timestamp": AT,
        "key": b"\x00k",
        "headers": [],
        "key_schema_id": None,
        "landed_at": AT,
    }
    event = {**row, "offset": 2 * landing, "value": b"\x00\xffv", "value_schema_id": 7}
    tombstone = {**row, "offset": 2 * landing + 1, "value": None, "value_schema_id": None}
    tombstone["headers"] = [{"key": "h", "value": b"\x01"}, {"key": "i", "value": None}]
    return pa.Table.from_pylist([event, tombstone], schema=LOG_SCHEMA)


class Log:
    """A log to which landings are appended without Spark."""

    def __init__(self, spark: SparkSession, path: Path, policy: Job = POLICY) -> None:
        self.spark, self.path = spark, str(path)
        self.position = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={"t": "id"})
        create_log(spark, self.path, self.position)
        self.appender = Appender(self.path, DELTA_TYPES)
        self.files = LogFiles(self.path, policy)

    def land(self, count: int) -> None:
        for _ in range(count):
            number = self.position.landing + 1
            self.position = LandedPosition(
                epoch=1, landing=number, offsets={"t": 2 * number + 1}, topic_ids={"t": "id"}
            )
            self.appender.append(rows(number), self.position.metadata())
            self.files.landed(self.position)

    def count_files(self) -> int:
        return len(DeltaTable(self.path).file_uris())

    def read(self) -> pa.Table:
        """Return the log's rows as Spark reads them."""
        found = self.spark.read.format("delta").load(self.path).orderBy("offset")
        return found.toArrow().cast(LOG_SCHEMA)


def test_small_files_become_one(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(4)
    assert log.count_files() == 4
    log.land(1)
    assert log.count_files() == 1
    assert log.read().equals(pa.concat_tables(map(rows, range(1, 6))))
    assert landed_position(log.path) == log.position
    assert [one.number for one in landings_beyond(log.path, 2)] == [3, 4, 5]


def test_landings_go_on_behind_it(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(13)
    assert log.count_files() < 4
    assert log.read().equals(pa.concat_tables(map(rows, range(1, 14))))
    assert landed_position(log.path) == log.position


def test_an_older_version_can_still_be_read(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(4)
    before = DeltaTable(log.path).version()
    log.land(1)
    pinned = spark.read.format("delta").option("versionAsOf", before).load(log.path)
    assert pinned.count() == 8


def test_files_that_are_large_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "MOST_BYTES", 1)
    log = Log(spark, tmp_path / "log")
    log.land(5)
    assert log.count_files() == 5
