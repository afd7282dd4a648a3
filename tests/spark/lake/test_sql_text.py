"""Spark's parser returns our strings and names unchanged, and the lake keeps a source's texts."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.events.values.sql_text import spark_delta, spark_name, spark_string
from cdc.lake.session import TEXTS
from cdc.lake.table import store
from cdc.lake.table.merge_plan import stored_columns
from cdc.lake.table.positions import KEY_PROPERTY, Position
from cdc.lake.upkeep.maintenance import expire
from cdc.tables import TableId, TableMode
from tests.local_spark import frame_of
from tests.unit.events.test_sql_text import ODD, texts

pytestmark = pytest.mark.spark

AT = Position(epoch=1, offset=3)
SUBSTITUTE = "spark.sql.variable.substitute"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, min_size=20, max_size=20))
@pytest.mark.parametrize("substitutes", ["true", "false"])
def test_a_string_keeps_its_text_whatever_the_session_substitutes(
    spark: SparkSession, substitutes: str, drawn: list[str]
) -> None:
    session = spark.newSession()
    session.conf.set(SUBSTITUTE, substitutes)
    wanted = [*ODD, *drawn]
    row = session.sql(f"SELECT array({', '.join(map(spark_string, wanted))}) AS x").collect()[0]

    assert row["x"] == wanted


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts.filter(bool), min_size=10, max_size=10))
def test_a_quoted_name_keeps_its_text(spark: SparkSession, drawn: list[str]) -> None:
    wanted = [*filter(None, ODD), *drawn]
    frame = spark.sql(f"SELECT {', '.join(f'1 AS {spark_name(name)}' for name in wanted)}")

    assert frame.columns == wanted


def test_no_session_of_ours_substitutes_values_in_texts(spark: SparkSession) -> None:
    """Derived sessions, which operations and tables use, do not either."""
    for session in (spark, spark.newSession()):
        assert {name: session.conf.get(name) for name in TEXTS} == TEXTS


@pytest.mark.parametrize("name", ["${env:HOME}", "it's", "a`b", 'a"b', "back\\slash", "a.b"])
def test_names_and_properties_of_a_table_are_kept(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / name.replace(".", "").replace("\\", ""))  # delta-rs refuses backslashes
    columns = (Column("id", "int"), Column(name, "string"))
    schema = TableSchema(table=TableId("s", "t"), columns=columns, key=(name,))
    store.create(spark, path, schema, AT)
    store.append(
        path, spark.sql(f"SELECT 1, {spark_string(name)}, 3L").toDF(*stored_columns(schema)), AT
    )

    assert DeltaTable(path).metadata().configuration[KEY_PROPERTY].count("\\\\") == (
        name.count("\\")
    )
    assert store.read_schema(path, schema.table) == schema
    assert spark.sql(f"SELECT * FROM {spark_delta(path)}").collect()[0][name] == name


@pytest.mark.parametrize("topic", ["w.it's", "w.${env:HOME}", "w.back\\slash'"])
def test_expiry_removes_events_of_the_topic_alone(
    spark: SparkSession, tmp_path: Path, topic: str
) -> None:
    path = str(tmp_path / "log")
    rows = [(name, landing) for name in (topic, "w.other") for landing in (1, 2)]
    frame = frame_of(spark, rows, "topic string, landing bigint")
    frame.write.format("delta").save(path)

    expire(spark, path, AT.metadata(), {topic: (1, 0)})

    left = sorted((row["topic"], row["landing"]) for row in store.read(spark, path).collect())
    assert left == sorted(set(rows) - {(topic, 1)})


def test_the_mode_of_a_table_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """The mode of a table without a key is a table property."""
    schema = TableSchema(
        table=TableId("s", "t"), columns=(Column("id", "int"),), key=(), mode=TableMode.MULTISET
    )
    store.create(spark, str(tmp_path / "t"), schema, AT)

    assert store.read_schema(str(tmp_path / "t"), schema.table) == schema
