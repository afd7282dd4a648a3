"""A reader that the project does not use can read the lake: DuckDB, with Delta's kernel.

The table has every feature that a reader may not support: deletion vectors, column mapping after a
rename and a drop, columns added later, a widened type, and a checkpoint.
"""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.events.structure.steps import AddColumn, DropColumn, RenameColumn, WidenColumn
from cdc.lake.alter import evolve
from cdc.lake.create.table import create
from cdc.lake.table import store
from cdc.lake.table.positions import Position
from cdc.tables import TableId, TableMode
from tests.duckdb_reader import duckdb_with_delta

pytestmark = pytest.mark.spark

TABLE = TableId("public", "t")
SCHEMA = TableSchema(
    table=TABLE,
    columns=(
        Column("id", "int"),
        Column("name", "string"),
        Column("day", "date"),
        Column("amount", "decimal(38,10)"),
        Column("at", "timestamp"),
        Column("local", "timestamp_ntz"),
        Column("bytes", "binary"),
        Column("tags", "array<string>"),
        Column("gone", "int"),
    ),
    key=("id",),
    mode=TableMode.KEYED,
)
STEPS = (
    RenameColumn("name", "title"),
    DropColumn("gone"),
    AddColumn(Column("later", "string"), "added"),
    WidenColumn("day", "timestamp_ntz"),
)
ROWS = """
SELECT cast(id AS int) AS id, concat('n', id) AS name, DATE'1582-10-04' AS day,
       cast('12345678901234567890123456.0123456789' AS decimal(38,10)) AS amount,
       TIMESTAMP'2020-01-01 00:00:00.000001Z' AS at, TIMESTAMP_NTZ'0001-01-01 00:00:00' AS local,
       X'00ff' AS bytes, array('a', NULL) AS tags, 7 AS gone, id AS _cdc_offset FROM range(300)
"""


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    create(spark, path, SCHEMA, Position(epoch=1, offset=0))
    store.append(path, spark.sql(ROWS), Position(epoch=1, offset=1))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id = 1")
    schema = SCHEMA
    for step in STEPS:
        schema = evolve.take_step(spark, path, schema, step, Position(epoch=1, offset=2).metadata())
    DeltaTable(path).create_checkpoint()
    return path


def test_duckdb_reads_what_spark_reads(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.read.format("delta").load(path).orderBy("id")
    expected = frame.toArrow().to_pylist()

    with duckdb_with_delta() as connection:
        names = ", ".join(f'"{name}"' for name in frame.columns)
        query = f"SELECT {names} FROM delta_scan('{path}') ORDER BY id"
        found = connection.execute(query).arrow().read_all().to_pylist()

    assert len(expected) == 200
    assert expected[0]["title"] == "changed"
    assert {row["later"] for row in expected} == {"added"}
    assert found == expected
