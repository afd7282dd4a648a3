"""Alters a table without Spark where that is possible."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField

from cdc.events.schema import Column
from cdc.events.structure.steps import DropColumn, RenameColumn
from cdc.events.values.sql_text import spark_delta, spark_name
from cdc.lake.commit.alter import alter_without_spark
from cdc.lake.commit.alteration import AddColumns, AllowFeature, Alteration, SetProperties
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.table import described
from cdc.lake.own_session import AnySession, OwnSession
from cdc.lake.table import store
from cdc.lake.table.positions import METADATA_CONF
from cdc.waiting import again_on_conflict

ATTEMPTS: Final = 5
"""Maintenance may commit in between; what it did does not matter to an alteration."""


def alter(session: AnySession, path: str, change: Alteration, metadata: str) -> None:
    """Alter the table at ``path`` in one commit that has ``metadata``, the position."""
    try:
        again_on_conflict(ATTEMPTS)(alter_without_spark, path, change, metadata)
    except TakeMergeError:
        spark = OwnSession.of(session).get()
        spark.conf.set(METADATA_CONF, metadata)
        _by_spark(spark, path, change)


def adding(columns: Sequence[Column]) -> AddColumns:
    """Return the alteration that adds these columns."""
    return AddColumns(described(", ".join(map(store.listed, columns))))


def _by_spark(spark: SparkSession, path: str, change: Alteration) -> None:
    match change:
        case AddColumns(fields):
            columns = [StructField.fromJson(dict(field)) for field in fields]
            listed = ", ".join(f"{spark_name(c.name)} {c.dataType.simpleString()}" for c in columns)
            spark.sql(f"ALTER TABLE {spark_delta(path)} ADD COLUMNS ({listed})")
        case RenameColumn(old, new):
            names = f"{spark_name(old)} TO {spark_name(new)}"
            spark.sql(f"ALTER TABLE {spark_delta(path)} RENAME COLUMN {names}")
        case DropColumn(name):
            spark.sql(f"ALTER TABLE {spark_delta(path)} DROP COLUMN {spark_name(name)}")
        case SetProperties(properties):
            store.set_properties(spark, path, properties)
        case AllowFeature(name):
            store.set_properties(spark, path, {f"delta.feature.{name}": "supported"})
