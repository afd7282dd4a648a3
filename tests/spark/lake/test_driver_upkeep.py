"""What the job combines without Spark, Spark and delta-rs read as before, with all that follows."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.config import Job
from cdc.lake.create.table import create
from cdc.lake.table.positions import Position, position
from cdc.lake.upkeep.driver_files import TOGETHER
from cdc.lake.upkeep.driver_upkeep import DriverUpkeep
from cdc.lake.upkeep.maintenance import Maintainer
from tests.spark.lake.committed import SCHEMA, Table, by_delta_rs, by_spark, in_order
from tests.waiting import until

pytestmark = pytest.mark.spark

LATER: Final = Job(maintain_every_commits=1, vacuum_every_hours=1000)


class Kept:
    """Commits to a table, whose upkeep has a thread of its own."""

    def __init__(self, table: Table, executor: ThreadPoolExecutor) -> None:
        self.table = table
        maintainer = Maintainer(table.path, LATER)
        self.upkeep = DriverUpkeep(table.committer, maintainer, executor)

    def commit(self, upserts: list[int], deletes: list[int]) -> None:
        self.table.commit(upserts, deletes)
        self.keep()

    def keep(self) -> None:
        at = Position(epoch=1, offset=self.table.offset)
        self.upkeep.committed(self.table.spark, at)

    def has_combined(self) -> bool:
        """Return whether files have been combined by now."""
        self.keep()
        history = DeltaTable(self.table.path).history()
        return any(commit["operation"] == "OPTIMIZE" for commit in history)


@pytest.fixture
def kept(spark: SparkSession, tmp_path: Path) -> Iterator[Kept]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    path = str(tmp_path / "t")
    create(spark, path, SCHEMA, Position(epoch=1, offset=0))
    with ThreadPoolExecutor(1) as executor:
        yield Kept(Table(spark, path), executor)


def test_all_readers_see_the_same_rows_before_and_after(kept: Kept, spark: SparkSession) -> None:
    """Of files by Spark and without Spark, with vectors by both, while more is deleted."""
    table = kept.table
    table.merge([*range(10), 1000, 1001])
    table.merge([3, 10], deletes=[0])
    for number in range(20, 20 + TOGETHER):
        kept.commit([number, 4], deletes=[number - 15])

    until(kept.has_combined)
    kept.commit([2000], deletes=[1000])

    table.check()
    assert position(table.path) == Position(epoch=1, offset=table.offset)
    operations = [commit["operation"] for commit in reversed(DeltaTable(table.path).history())]
    version = operations.index("OPTIMIZE")
    before = by_delta_rs(table.path, version=version - 1)
    assert before == by_delta_rs(table.path, version=version)
    assert before == by_spark(spark, table.path, version=version - 1)
    assert before == by_spark(spark, table.path, version=version)
    in_spark = spark.sql(f"DESCRIBE HISTORY delta.`{table.path}`").collect()
    assert [commit.operation for commit in reversed(in_spark)] == operations


def test_vectors_of_combined_files_are_gone_and_the_table_goes_on(
    kept: Kept, spark: SparkSession
) -> None:
    table = kept.table
    for number in range(TOGETHER):
        table.commit([10 * number + n for n in range(5)], deletes=[10 * number - 9])
    before = dict(table.expected)
    opened = table.committer.open()
    assert any(file.vector for file in opened.files.values())

    until(kept.has_combined)

    (file,) = table.committer.open().files.values()
    assert file.vector is None
    assert file.records == len(before)
    table.check(before)
    table.commit([11, 300], deletes=[12])
    table.merge([13, 301], deletes=[14])
    table.check()
    assert by_spark(spark, table.path, version=opened.version) == in_order(before)
    assert by_delta_rs(table.path, version=opened.version) == in_order(before)
