"""Test that events of every type are decoded without Spark exactly as they are by Spark.

With ``--deep`` these are 10,000 random rows of every table of types.
"""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.capture.bootstrap import placeholder
from cdc.kafka.registry_client import RegistryClient
from cdc.lake.layout import log_path, table_path
from cdc.lake.table import store
from cdc.lake.table.merge_plan import REASON
from cdc.tables import TableId, TableMode
from tests.events.recorded import Message
from tests.kinds import special
from tests.kinds.columns import SCHEMA, TABLES
from tests.kinds.pipeline import Pipeline
from tests.local_spark import local_spark
from tests.spark.apply.test_two_ways import Given, by_spark, differences, without_spark

pytestmark = pytest.mark.integration

COMPARED = [*TABLES, "large", "keyed", "defaults", "nulls", "limits", "altered"]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def log(pipeline: Pipeline) -> pa.Table:
    """All events that have landed: of the snapshot, and of changes of every other row."""
    for table in TABLES:
        pipeline.execute(f"UPDATE {SCHEMA}.{table} SET n = n WHERE id % 2 = 0")
        pipeline.execute(f"DELETE FROM {SCHEMA}.{table} WHERE id % 16 = 7")
    pipeline.execute(f"UPDATE {SCHEMA}.defaults SET n = n")
    special.insert_large(pipeline, 5000)
    special.insert_limits(pipeline, 5000)
    pipeline.synced()
    columns = ["topic", "offset", "key", "value", "headers", "value_schema_id", "key_schema_id"]
    return DeltaTable(log_path(pipeline.config)).to_pyarrow_table(columns=columns)


def given(pipeline: Pipeline, log: pa.Table, table: str) -> Given:
    """Return the table's events, with its columns in the lake."""
    name = TableId(SCHEMA, table)
    mine = log.filter(pc.field("topic") == f"{pipeline.given.name}.{name}").sort_by("offset")
    schema = store.read_schema(table_path(pipeline.config, name), name)
    assert schema is not None
    registry = RegistryClient(pipeline.given.endpoints.registry)
    ids = {
        c: mine[c].drop_null().unique().to_pylist() for c in ("value_schema_id", "key_schema_id")
    }
    messages = [
        Message(
            topic=row["topic"],
            offset=row["offset"],
            key=row["key"],
            value=row["value"],
            headers=tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row in mine.to_pylist()
    ]
    return Given(
        messages=messages,
        schemas=registry.schemas(ids["value_schema_id"]),
        schema=schema,
        placeholder=placeholder(pipeline.given),
        keys=registry.schemas(ids["key_schema_id"]),
    )


@pytest.mark.parametrize("table", COMPARED)
def test_events_are_decoded_alike(
    pipeline: Pipeline, spark: SparkSession, log: pa.Table, table: str
) -> None:
    """In the table's own mode, and as a table without a key, where rows before matter."""
    keyed = given(pipeline, log, table)
    copies = replace(keyed, schema=replace(keyed.schema, mode=TableMode.MULTISET, key=()))

    for one in (keyed, copies):
        spark_way = by_spark(spark, one)

        assert differences(spark_way, without_spark(one), one.schema) == []
        kept = spark_way[REASON].null_count
        assert kept > 1
    assert table not in TABLES or kept > pipeline.rows[table]
