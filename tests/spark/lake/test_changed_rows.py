"""Rows that differ between versions which Spark has written, with its vectors and its upkeep."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.lake.changed.changed_rows import count_changed
from cdc.lake.commit.snapshot import entry_actions
from cdc.lake.create.table import create
from cdc.lake.files.store_of import store_of
from cdc.lake.table.positions import Position
from tests.spark.lake.committed import SCHEMA, Table
from tests.unit.lake.changed.two_versions import check_all, differ

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    """Make a table of two versions with rows, the second with a vector of Spark's."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    create(spark, str(tmp_path / "t"), SCHEMA, Position(epoch=1, offset=0))
    table = Table(spark, str(tmp_path / "t"))
    table.merge(range(60))
    table.merge([3, 60], deletes=[0, 59])
    return table


def newest(table: Table) -> int:
    return DeltaTable(table.path).version()


def vectors(table: Table, version: int) -> Iterator[dict[str, Any]]:
    for action in entry_actions(store_of(table.path), version):
        if found := action.get("add", {}).get("deletionVector"):
            yield found


def test_a_merge_that_marks_rows(table: Table) -> None:
    version = newest(table)
    assert list(vectors(table, version))

    found = differ(Path(table.path), version - 1, version)

    assert sorted(found.removed["id"].to_pylist()) == [0, 3, 59]
    assert sorted(found.added["id"].to_pylist()) == [3, 60]


def test_rows_that_spark_only_moves_do_not_differ(table: Table) -> None:
    before = newest(table)

    table.sql("OPTIMIZE {}")
    optimized = newest(table)
    table.merge([61], deletes=[1])
    merged = newest(table)
    table.sql("REORG TABLE {} APPLY (PURGE)")

    assert before < optimized < merged < newest(table)
    assert count_changed(table.path, before, optimized) == 0
    assert count_changed(table.path, merged, newest(table)) == 0
    assert count_changed(table.path, before, newest(table)) == 2


def test_every_version_after_all_that_happens_to_a_table(table: Table) -> None:
    kept = newest(table)
    table.commit([1, 2, 61], deletes=[4, 60])
    table.sql("OPTIMIZE {}")
    table.merge([2, 62], deletes=[61, 5])
    DeltaTable(table.path).create_checkpoint()
    table.sql("DELETE FROM {} WHERE id < 3")
    table.sql("UPDATE {} SET name = 'x' WHERE id < 10")
    table.sql(f"RESTORE {{}} TO VERSION AS OF {kept}")
    table.commit([10], deletes=[11])
    table.sql("REORG TABLE {} APPLY (PURGE)")

    check_all(Path(table.path), range(newest(table) + 1))
    differ(Path(table.path), kept, newest(table), ["odd name, yes", "tags"])
