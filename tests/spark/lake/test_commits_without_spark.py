"""What the job commits without Spark is read by Spark, Delta Kernel, delta-rs and DuckDB alike.

Also after all that happens to a table later: a checkpoint, a MERGE and an OPTIMIZE on top, RESTORE
and VACUUM, each followed by another such commit.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.lake.commit.alter import alter_without_spark
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.create.table import create
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.positions import Position, position
from cdc.lake.upkeep.kept_versions import FILES_KEPT
from cdc.lake.upkeep.maintenance import VACUUM_SETTINGS
from tests.spark.lake.committed import SCHEMA, Rows, Table, by_delta_rs, by_duckdb, by_spark

pytestmark = pytest.mark.spark

UNCHECKED: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """Make a table of two files of Spark's, one of them with a vector of Spark's."""
    path = tmp_path_factory.mktemp("base") / "t"
    create(spark, str(path), SCHEMA, Position(epoch=1, offset=0))
    table = Table(spark, str(path))
    table.merge(range(60))
    table.merge([3, 60], deletes=[0, 59])
    return path, table.expected


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, base: tuple[Path, Rows]) -> Table:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    shutil.copytree(base[0], tmp_path / "t")
    table = Table(spark, str(tmp_path / "t"))
    table.expected, table.offset = dict(base[1]), 3
    return table


def test_all_readers_see_the_same_rows(table: Table) -> None:
    table.commit([1, 2, 61], deletes=[4, 60])
    table.commit([2, 62], deletes=[61, 5])

    table.check()
    assert position(table.path) == Position(epoch=1, offset=table.offset)


def test_also_from_a_checkpoint_and_below_a_merge(table: Table) -> None:
    table.commit([1, 2, 61], deletes=[4, 60])
    DeltaTable(table.path).create_checkpoint()
    for version in range(table.committer.open().version):
        (Path(table.path) / entry_name(version)).unlink()

    table.merge([2, 6, 63], deletes=[7, 61])

    table.check()
    table.commit([6, 64], deletes=[63, 8])
    table.check()


def test_also_after_optimize_restore_and_vacuum(table: Table, spark: SparkSession) -> None:
    version = table.commit([1, 2, 61], deletes=[4, 60])
    kept = dict(table.expected)
    table.commit([2, 62], deletes=[61, 5])
    table.sql("OPTIMIZE {}")
    table.commit([6, 65], deletes=[62, 9])
    table.check()

    table.sql(f"RESTORE {{}} TO VERSION AS OF {version}")
    table.expected = kept
    table.commit([10], deletes=[11])
    table.check()

    for name, value in {UNCHECKED: "false", **VACUUM_SETTINGS}.items():
        spark.conf.set(name, value)
    table.sql("VACUUM {} RETAIN 0 HOURS")
    table.commit([12, 66], deletes=[10])
    table.check()


def test_also_after_a_change_of_properties(table: Table) -> None:
    table.commit([1, 2, 61], deletes=[4, 60])
    wanted = {FILES_KEPT: "interval 900 seconds", "delta.checkpointInterval": "3"}
    at = Position(epoch=1, offset=table.offset)

    version = alter_without_spark(table.path, SetProperties(wanted), at.metadata())

    table.check()
    (said,) = table.spark.sql(f"DESCRIBE DETAIL delta.`{table.path}`").collect()
    assert said["properties"].items() >= wanted.items()
    (done,) = table.spark.sql(f"DESCRIBE HISTORY delta.`{table.path}` LIMIT 1").collect()
    assert (done["version"], done["operation"]) == (version, "SET TBLPROPERTIES")
    table.merge([6, 63], deletes=[7, 61])
    table.commit([8], deletes=[6])
    DeltaTable(table.path).create_checkpoint()
    table.merge([64])
    table.check()


LITERALS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    "id": lambda r: f"{r['id']}",
    "name": lambda r: f"'{r['name']}'",
    "small": lambda r: f"CAST({r['small']} AS SMALLINT)",
    "single": lambda r: f"CAST({r['single']} AS FLOAT)",
    "double": lambda r: f"CAST({r['double']!r} AS DOUBLE)",
    "day": lambda r: f"DATE '{r['day'].isoformat()}'",
    "price": lambda r: f"CAST('{r['price']}' AS DECIMAL(10,2))",
    "amount": lambda r: f"CAST('{r['amount']}' AS DECIMAL(38,10))",
    "at": lambda r: f"TIMESTAMP '{r['at'].isoformat(sep=' ')}'",
}


def test_statistics_let_no_reader_skip_a_row(table: Table) -> None:
    """Each of several conditions would hide the row if the file's bounds were wrong."""
    numbers = [7, 3001, 4999]
    table.commit(numbers, deletes=range(100))

    for found in (table.expected[number] for number in numbers):
        assert by_spark(table.spark, table.path, condition(found, "`")) == [found]
        in_duckdb = condition(found, '"').replace("TIMESTAMP", "TIMESTAMPTZ")
        assert by_duckdb(table.path, in_duckdb) == [found]
        in_fusion = condition(found, '"', names=("id", "name", "small", "price", "day"))
        assert by_delta_rs(table.path, in_fusion) == [found]


def condition(row: dict[str, Any], quote: str, names: Iterable[str] = LITERALS) -> str:
    """Return what is true of this row alone, with names in a reader's quotation marks."""
    return " AND ".join(f"{quote}{name}{quote} = {LITERALS[name](row)}" for name in names)


def test_an_aggregate_that_spark_takes_from_statistics_is_right(table: Table) -> None:
    table.commit([7, 3001], deletes=range(100))
    query = "SELECT count(*) n, min(id) a, max(id) b, min(_cdc_offset) c, max(price) d FROM {}"

    found = table.spark.sql(query.format(f"delta.`{table.path}`")).collect()[0]

    assert tuple(found) == (2, 7, 3001, table.offset, Decimal("30.01"))
