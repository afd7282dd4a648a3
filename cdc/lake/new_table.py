"""Creates an empty current-state table, without Spark where that is possible."""

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc.events.schema import TableSchema
from cdc.events.structure.structure import Structure
from cdc.events.values.sql_text import spark_delta
from cdc.lake.commit.first_entry import create_table
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.table.positions import METADATA_CONF, Position
from cdc.lake.table.store import definition, listed, own_columns, properties_of


def create(
    spark: SparkSession,
    path: str,
    schema: TableSchema,
    position: Position,
    structure: Structure | None = None,
) -> None:
    """Create the empty table at ``path``, with a position in its first commit.

    ``structure`` is the source's structure that the table follows, if it is known.
    """
    properties = properties_of(schema, structure)
    columns = ", ".join(
        [definition(column) for column in schema.columns] + own_columns(schema.mode)
    )
    try:
        fields = json.loads(StructType.fromDDL(columns).json())["fields"]
        create_table(path, fields, properties, position.metadata())
    except TakeMergeError:
        _create_by_spark(spark, path, columns, properties, position)


def _create_by_spark(
    spark: SparkSession, path: str, columns: str, properties: Mapping[str, str], position: Position
) -> None:
    spark.conf.set(METADATA_CONF, position.metadata())
    table = spark_delta(path)
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES ({listed(properties)})")
