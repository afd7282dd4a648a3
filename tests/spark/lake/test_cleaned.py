"""A table that was cleaned without Spark is whole for all its readers and writers."""

import os
import time
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.lake.create.table import create
from cdc.lake.table import store
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.positions import Position, position
from cdc.lake.upkeep.kept_versions import FILES_KEPT, LOG_KEPT
from cdc.lake.upkeep.maintenance import VACUUM_SETTINGS
from cdc.lake.upkeep.old_versions import clean
from tests.spark.lake.committed import SCHEMA, Rows, Table, by_delta_rs, by_spark, in_order

pytestmark = pytest.mark.spark

HOUR: Final = 3600


class Aging:
    """A table whose commits are ten minutes apart, the last one now; an hour of them is kept."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.table = Table(spark, path)
        self.rows: dict[int, Rows] = {}  # by version

    def grow(self) -> None:
        """Commit by Spark and without it, with vectors, a combined file and a checkpoint."""
        table = self.table
        table.merge([*range(10), 1000, 1001])
        self._note()
        for number in range(20, 34):
            table.commit([number, 4], deletes=[number - 15])
            self._note()
            if number == 26:
                self._combine()
            if number == 27:
                DeltaTable(table.path).create_checkpoint()
        table.merge([3, 10], deletes=[0])
        self._note()

    def _combine(self) -> None:
        opened = self.table.committer.open()
        combined = self.table.committer.combining(list(opened.files.values()))()
        at = Position(epoch=1, offset=self.table.offset)
        assert self.table.committer.take_place(combined, at) is not None
        self._note()

    def _note(self) -> None:
        self.rows[DeltaTable(self.table.path).version()] = dict(self.table.expected)

    def age(self) -> float:
        """Set the times of all commits; return the time since which versions are kept."""
        newest, now = max(self.rows), time.time()
        entries = [(v, Path(self.table.path) / entry_name(v)) for v in range(newest + 1)]
        for version, entry in entries:
            then = now - (newest - version) * HOUR / 6
            if entry.exists():  # it has not been cleaned yet
                os.utime(entry, (then, then))
        return now - HOUR

    def check_old(self, spark: SparkSession) -> None:
        """Read all versions of the last hour."""
        for version in range(max(self.rows) - 6, max(self.rows) + 1):
            wanted = in_order(self.rows[version])
            assert by_delta_rs(self.table.path, version=version) == wanted
            assert by_spark(spark, self.table.path, version=version) == wanted


@pytest.fixture
def aging(spark: SparkSession, tmp_path: Path) -> Aging:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    path = str(tmp_path / "t")
    create(spark, path, SCHEMA, Position(epoch=1, offset=0))
    kept = {FILES_KEPT: "interval 3600 seconds", LOG_KEPT: "interval 3600 seconds"}
    store.set_properties(spark, path, kept)
    grown = Aging(spark, path)
    grown.grow()
    return grown


def test_all_readers_read_it_and_all_writers_go_on(aging: Aging, spark: SparkSession) -> None:
    table = aging.table

    cleaned = clean(table.path, aging.age())

    assert cleaned.files > 10
    assert not (Path(table.path) / entry_name(1)).exists()
    table.check()
    aging.check_old(spark)
    assert position(table.path) == Position(epoch=1, offset=table.offset)
    table.commit([40, 41], deletes=[31])
    table.merge([42], deletes=[40])
    table.commit([43], deletes=[42, 41])
    table.check()


def test_a_vacuum_by_spark_beside_it_does_no_harm(aging: Aging, spark: SparkSession) -> None:
    """It deletes what cleaning has left only if that is in no version, and the other way round."""
    table = aging.table
    files = set(Path(table.path).iterdir())
    clean(table.path, aging.age())
    for name, value in VACUUM_SETTINGS.items():
        spark.conf.set(name, value)
    left = set(Path(table.path).iterdir())

    table.sql("VACUUM {}")

    assert files > left == set(Path(table.path).iterdir())
    aging.check_old(spark)
    table.commit([50], deletes=[31])
    table.check()
    clean(table.path, aging.age())
    table.check()


def test_a_reader_that_has_opened_an_old_version_reads_on(
    aging: Aging, spark: SparkSession
) -> None:
    version = max(aging.rows) - 6
    since = aging.age()
    frame = store.read(spark, aging.table.path, version).orderBy("id")
    opened = DeltaTable(aging.table.path, version=version)

    clean(aging.table.path, since)

    assert frame.toArrow().to_pylist() == in_order(aging.rows[version])
    read = QueryBuilder().register("t", opened).execute("SELECT id FROM t").read_all()
    assert sorted(pa.table(read).column("id").to_pylist()) == sorted(aging.rows[version])
