"""A table that is rewritten has no byte of a deleted row, and its position."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.events.values.sql_text import spark_delta
from cdc.lake.table import store
from cdc.lake.table.positions import METADATA_CONF, Position, position
from cdc.lake.upkeep.erasure import delete_older
from cdc.lake.upkeep.without_deleted import rewrite
from cdc.tables import TableId, TableMode
from tests.masked.traces import files_with

pytestmark = pytest.mark.spark

SECRET = "SECRET7f3a"
AT = Position(epoch=1, offset=7)
SCHEMA = TableSchema(
    table=TableId("shop", "places"),
    columns=(Column("id", "int"), Column("name", "string")),
    key=("id",),
    mode=TableMode.KEYED,
)


def test_a_rewritten_table_has_no_byte_of_its_deleted_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    session, path = spark.newSession(), str(tmp_path / "table")
    store.create(session, path, SCHEMA, AT)
    rows = "SELECT id, IF(id = 3, '{}', concat('n', id)) AS name, id AS _cdc_offset FROM range(9)"
    for secret in (SECRET, f"{SECRET} again"):
        found = session.sql(rows.format(secret)).selectExpr("int(id) id", "name", "_cdc_offset")
        store.overwrite(path, found.coalesce(1), AT)
    session.conf.set(METADATA_CONF, AT.metadata())
    session.sql(f"DELETE FROM {spark_delta(path)} WHERE id = 3")
    assert any(name.endswith(".parquet") for name in files_with(tmp_path, SECRET))
    assert any(name.endswith(".json") for name in files_with(tmp_path, SECRET))

    for _ in range(2):  # as after a crash
        delete_older(path, rewrite(session, path, AT.metadata()))

        assert files_with(tmp_path, SECRET) == []
        assert position(path) == AT
        assert session.read.format("delta").load(path).count() == 8
        files = [file for file in (tmp_path / "table").glob("[!_]*/*") if file.suffix != ".crc"]
        assert len(files) == len(DeltaTable(path).file_uris())
