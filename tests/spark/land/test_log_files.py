"""The log's small files become one without Spark, and nothing else of the log changes."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.lake.commit.appender import Appender
from cdc.lake.commit.replay import LiveFile
from cdc.lake.table.positions import LandedPosition, landed_position
from cdc.lake.upkeep.driver_files import worth_combining
from cdc.lake.upkeep.small_files import SMALL_BYTES
from cdc.land.arrow_rows import DELTA_TYPES, LOG_SCHEMA
from cdc.land.log_files import WORK_BYTES, LogFiles
from cdc.land.log_table import LOG_COLUMNS, create_log
from cdc.land.read_back import landings_beyond
from tests.later import Later

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
        self.later = Later()
        self.files = LogFiles(self.path, policy, self.appender, self.later)

    def land(self, count: int) -> None:
        for _ in range(count):
            number = self.position.landing + 1
            self.position = LandedPosition(
                epoch=1, landing=number, offsets={"t": 2 * number + 1}, topic_ids={"t": "id"}
            )
            self.appender.append(rows(number), self.position.metadata())
            self.files.landed(self.position)

    def combine(self) -> None:
        """Combine, and land once: the landing puts the result into the log."""
        assert self.later.work() == 1
        self.land(1)

    def count_files(self) -> int:
        return len(DeltaTable(self.path).file_uris())

    def read(self) -> pa.Table:
        """Return the log's rows as Spark reads them."""
        found = self.spark.read.format("delta").load(self.path).orderBy("offset")
        return found.toArrow().cast(LOG_SCHEMA)


def test_small_files_become_one(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(4)
    assert log.later.waiting == []
    log.land(1)
    log.combine()
    assert log.count_files() == 2
    assert log.read().equals(pa.concat_tables(map(rows, range(1, 7))))
    assert landed_position(log.path) == log.position
    assert [one.number for one in landings_beyond(log.path, 3)] == [4, 5, 6]


def test_landings_do_not_wait_for_it(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(9)
    assert log.count_files() == 9
    log.combine()
    log.land(3)
    log.combine()
    assert log.count_files() < 9
    assert log.read().equals(pa.concat_tables(map(rows, range(1, 15))))
    assert landed_position(log.path) == log.position


def test_files_of_spark_are_combined_as_well(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log", POLICY.model_copy(update={"maintain_every_commits": 1}))
    frame = spark.createDataFrame(rows(100), LOG_COLUMNS).coalesce(1)
    append = frame.write.format("delta").option("userMetadata", log.position.metadata())
    append.mode("append").save(log.path)
    log.land(2)
    log.combine()
    assert log.count_files() == 2
    assert log.read().equals(pa.concat_tables(map(rows, (1, 2, 3, 100))))


def test_an_older_version_can_still_be_read(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(5)
    before = DeltaTable(log.path).version()
    log.combine()
    pinned = spark.read.format("delta").option("versionAsOf", before).load(log.path)
    assert pinned.count() == 10


def test_what_cannot_be_combined_here_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(spark, tmp_path / "log")
    log.land(5)
    assert log.files.left().sizes == ()
    damaged = Path(DeltaTable(log.path).file_uris()[0])
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-9])
    log.combine()
    damaged.write_bytes(content)
    assert len(log.files.left().sizes) == log.count_files() == 6


def test_a_work_is_bounded() -> None:
    def file(size: int) -> LiveFile:
        return LiveFile(path=f"{size}", size=size, modified=-size, stats=None)

    ten = [file(SMALL_BYTES // 4 + n) for n in range(10)]

    def small(files: list[LiveFile]) -> list[LiveFile]:
        return worth_combining(files, 3, limit=SMALL_BYTES, most=WORK_BYTES)

    assert small(ten) == list(reversed(ten[:7]))
    assert small([file(SMALL_BYTES + n) for n in range(10)]) == []
    assert small(ten[:2]) == []
