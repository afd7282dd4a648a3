"""Rows that Spark wrote are read from their files, without Spark, as Spark itself reads them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.apply.local.places import RowPlaces
from cdc.apply.local.table_rows import TableRows
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.batch import Batch
from cdc.config import Job
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.events.values.sql_text import spark_name
from cdc.lake.alter import evolve
from cdc.lake.commit.committer import Committer
from cdc.lake.create.table import create
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.plain_values import plain_values
from cdc.lake.table.positions import METADATA_CONF, Position
from cdc.tables import TableMode
from tests.events import two_ways
from tests.events.damaged import MARK
from tests.events.recorded import LOG_COLUMNS
from tests.local_spark import frame_of

pytestmark = pytest.mark.spark

WRITER = {two_ways.WRITER: two_ways.EVERY_TYPE}
SCHEMA = table_schema_from_avro(
    two_ways.EVERY_TYPE, table=two_ways.TABLE, key=("id",), mode=TableMode.KEYED
)


def by_spark(spark: SparkSession, path: str, schema: TableSchema) -> dict[Any, Sequence[Any]]:
    names = map(spark_name, schema.names)
    rows = spark.read.format("delta").load(path).select(*names).toArrow()
    columns = [plain_values(rows[name]) for name in schema.names]
    return {(row[0],): row for row in zip(*columns, strict=True)}


def without_spark(
    path: str, schema: TableSchema, folder: Path, keys: Sequence[Any]
) -> Mapping[Any, Sequence[Any]]:
    committer = Committer(path)
    places = RowPlaces(path, folder, 1 << 20)
    rows = TableRows(path, places.at(schema, committer.open(), committer.deleted_rows))
    return rows.rows(keys, range(len(schema.columns)))


def test_rows_of_every_type_are_read_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also of several files with deletion vectors, with a column added later, and optimized."""
    path, at, schema = str(tmp_path / "t"), Position(epoch=1, offset=-1), SCHEMA
    policy = Job(quarantine_limit_run=10_000)
    context = ApplyContext(
        quarantine=Quarantine(str(tmp_path / "q")), placeholder=MARK, policy=policy
    )
    create(spark, path, schema, at)
    rows = list(two_ways.one_by_one(two_ways.EVERY_TYPE, MARK))
    rows += two_ways.at_random(two_ways.EVERY_TYPE, MARK, Random(28), 300)
    messages = two_ways.messages(two_ways.EVERY_TYPE, iter(rows), "c")

    def check() -> None:
        expected = by_spark(spark, path, schema)
        found = without_spark(path, schema, tmp_path / "index", [*expected, (-7,)])
        assert repr(sorted(found.items())) == repr(sorted(expected.items()))
        assert len(expected) > 1000

    half = len(messages) // 2
    for part in (messages[:half], messages[half:]):
        frame = frame_of(spark, [(*m.row(), 0) for m in part], f"{LOG_COLUMNS}, partition int")
        batch = Batch(session=spark, path=path, schema=schema, position=at, context=context)
        at = batch.commit(frame, part[-1].offset, WRITER)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 7 = 3")
    check()

    added = Column("added", "array<decimal(10,2)>")
    evolve.add_columns(spark, path, (added,), at.metadata())
    schema = TableSchema(
        table=schema.table, columns=(*schema.columns, added), key=schema.key, mode=schema.mode
    )
    check()

    spark.conf.set(METADATA_CONF, at.metadata())
    spark.sql(f"OPTIMIZE delta.`{path}`")
    check()
