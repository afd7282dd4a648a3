"""A table that is created without Spark is the one that Spark's CREATE TABLE makes."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.errors import CdcError
from cdc.events.schema import Column, TableSchema
from cdc.lake.create.table import create
from cdc.lake.table import store
from cdc.lake.table.positions import LandedPosition, Position, landed_position, position
from cdc.land.log_table import create_log, create_log_by_spark
from cdc.tables import TableId, TableMode

pytestmark = pytest.mark.spark

AT = Position(epoch=1, offset=-1)
NESTED = "map<string,struct<a:int,b:array<struct<c:timestamp_ntz>>>>"
SCHEMA = TableSchema(
    table=TableId("shop", "orders"),
    columns=(
        Column("id", "bigint"),
        Column("it's `odd`", "decimal(20,4)"),
        Column("at", "timestamp"),
        Column("nested", NESTED),
    ),
    key=("id",),
    mode=TableMode.KEYED,
)


def actions(path: str) -> dict[str, Any]:
    lines = (Path(path) / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    return {name: value for line in lines for name, value in json.loads(line).items()}


def without_names(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave out what is drawn for each table: the names of columns in data files."""
    if isinstance(value, dict):
        return {k: without_names(v) for k, v in value.items() if not k.endswith(".physicalName")}
    return [without_names(v) for v in value] if isinstance(value, list) else value


def test_the_entry_says_what_sparks_does(spark: SparkSession, tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    create(spark, ours, SCHEMA, AT)
    store.create(spark, theirs, SCHEMA, AT)
    mine, sparks = actions(ours), actions(theirs)
    for name in ("readerFeatures", "writerFeatures"):
        assert set(mine["protocol"][name]) == set(sparks["protocol"][name])
    own = ("minReaderVersion", "minWriterVersion")
    assert [mine["protocol"][n] for n in own] == [sparks["protocol"][n] for n in own]
    described = [json.loads(a["metaData"]["schemaString"]) for a in (mine, sparks)]
    assert without_names(described[0]) == without_names(described[1])
    for name in ("configuration", "format", "partitionColumns"):
        assert mine["metaData"][name] == sparks["metaData"][name]
    assert mine["commitInfo"]["userMetadata"] == sparks["commitInfo"]["userMetadata"]


def test_spark_writes_to_it_and_both_readers_read_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create(spark, path, SCHEMA, AT)
    assert position(path) == AT
    assert store.read_schema(path, SCHEMA.table) == SCHEMA
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, 2.5, TIMESTAMP '2026-01-01 00:00:00', NULL, 3")
    assert spark.read.format("delta").load(path).count() == 1
    assert DeltaTable(path).version() == 1


def test_a_table_that_is_there_is_not_created_again(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create(spark, path, SCHEMA, AT)
    with pytest.raises(CdcError):
        create(spark, path, SCHEMA, AT)


def test_a_plain_table_says_what_sparks_log_does(spark: SparkSession, tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    at = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    create_log_by_spark(spark, theirs, at)
    create_log(spark, ours, at)
    mine, sparks = actions(ours), actions(theirs)
    assert mine["protocol"] == sparks["protocol"]
    schemas = [json.loads(a["metaData"]["schemaString"]) for a in (mine, sparks)]
    assert schemas[0] == schemas[1]
    for name in ("configuration", "format", "partitionColumns"):
        assert mine["metaData"][name] == sparks["metaData"][name]
    assert landed_position(ours) == landed_position(theirs) == at
    assert spark.read.format("delta").load(ours).count() == 0
