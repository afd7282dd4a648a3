"""A compiled predicate means the same in Postgres and in Spark, and the same as its text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.predicate.parse import RESERVED
from cdc.source.predicate.postgres_check import estimated_rows, predicate
from cdc.source.predicate.predicate import Predicate
from cdc.source.server.connection import Connection, connect
from cdc.tables import TableId
from tests.source.predicates import COLUMNS, rows, texts
from tests.spark import conftest as spark_session

pytestmark = pytest.mark.integration

TABLE = TableId("predicates", "awkward")
ROWS = 150
Answers = dict[int, tuple[bool | None, ...]]

spark = spark_session.spark

OTHER_SETTINGS = """
SET standard_conforming_strings = off; SET escape_string_warning = off;
SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kolkata'
"""
"""Settings that would change the meaning of typed text."""


@pytest.fixture(scope="module")
def source(source_url: str) -> Iterator[Connection]:
    """Return a connection to a Postgres with the awkward rows, its search path set."""
    with connect(source_url) as connection:
        connection.execute("CREATE SCHEMA predicates")
        connection.execute("SET search_path = predicates")
        connection.execute("CREATE TYPE mood AS ENUM ('zzz', 'ok', 'it''s')")
        connection.execute("CREATE TYPE pair AS (a int, b int)")
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        connection.execute(f"CREATE TABLE awkward ({columns}, PRIMARY KEY (id))".encode())
        places = ", ".join(f"%s::text::{kind}" for kind in COLUMNS.values())
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO awkward VALUES ({places})".encode(), rows(ROWS, 7))
        connection.execute("ANALYZE awkward")
        yield connection


@pytest.fixture(scope="module")
def other_session(source_url: str) -> Iterator[Connection]:
    with connect(source_url) as connection:
        connection.execute(OTHER_SETTINGS)
        yield connection


@pytest.fixture(scope="module")
def table(source: Connection) -> SourceTable:
    config = Config(source=Source(tables=["predicates.*"]), lake=Lake(path="/lake"))
    (awkward,) = (each for each in inspect(source, config).tables if each.table == TABLE)
    return awkward


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession,
    source: Connection,
    table: SourceTable,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """Write the same rows to a Delta table of several files with statistics; return its path."""
    folder = tmp_path_factory.mktemp("lake")
    written = _write(source, table, folder / "plain")
    frame = spark.read.format("delta").load(str(written))
    frame.repartition(6).write.format("delta").save(str(folder / "files"))
    return str(folder / "files")


@dataclass(frozen=True, kw_only=True)
class Engines:
    """The same rows in Postgres, in sessions with two settings, and in Spark."""

    spark: SparkSession
    lake: str
    source: Connection
    other_session: Connection
    table: SourceTable


@pytest.fixture(scope="module")
def engines(
    spark: SparkSession,
    lake: str,
    source: Connection,
    other_session: Connection,
    table: SourceTable,
) -> Engines:
    return Engines(spark=spark, lake=lake, source=source, other_session=other_session, table=table)


def _write(source: Connection, table: SourceTable, path: Path) -> Path:
    """Write rows by delta-rs, with the values as Postgres and psycopg convert them."""
    types = {
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp_ntz": pa.timestamp("us"),
        "timestamp": pa.timestamp("us", "UTC"),
        "decimal(10,2)": pa.decimal128(10, 2),
        "decimal(38,10)": pa.decimal128(38, 10),
        "string": pa.string(),
    }
    named = [f"format('%s', {_name(c)})" if c.type == "string" else _name(c) for c in table.columns]
    shown = [
        f"CASE WHEN num_nulls({_name(column)}) = 0 THEN {text} END"
        for column, text in zip(table.columns, named, strict=True)
    ]
    found = source.execute(f"SELECT {', '.join(shown)} FROM awkward".encode()).fetchall()
    arrays = {
        column.name: pa.array([row[place] for row in found], types[column.type])
        for place, column in enumerate(table.columns)
    }
    write_deltalake(str(path), pa.table(arrays))
    return path


def _name(column: SourceColumn) -> str:
    return f'"{column.name}"'


def answers(connection: Connection, conditions: Sequence[str]) -> Answers:
    """Return Postgres's answer to each condition, by the row's id."""
    listed = ", ".join(f"({condition})" for condition in conditions)
    found = connection.execute(f"SELECT id, {listed} FROM predicates.awkward".encode()).fetchall()
    return {row[0]: tuple(row[1:]) for row in found}


def spark_answers(engines: Engines, conditions: Sequence[str]) -> Answers:
    """Return Spark's answer to each condition, by the row's id."""
    listed = [f"({condition}) AS p{place}" for place, condition in enumerate(conditions)]
    query = f"SELECT id, {', '.join(listed)} FROM delta.`{engines.lake}`"
    found = engines.spark.sql(query).collect()
    return {row[0]: tuple(row[1:]) for row in found}


def filtered(engines: Engines, conditions: Sequence[str]) -> set[tuple[int, int]]:
    """Return the ids of the rows that pass each condition as a filter, by its number."""
    queries = [
        f"SELECT {place}, id FROM delta.`{engines.lake}` WHERE {condition}"
        for place, condition in enumerate(conditions)
    ]
    found = engines.spark.sql(" UNION ALL ".join(queries)).collect()
    return {(place, number) for place, number in found}


def quick(share: int) -> settings:
    """Return settings for a share of the profile's examples; each tests many predicates."""
    return settings(
        phases=[Phase.generate],
        max_examples=max(4, settings().max_examples // share),
        suppress_health_check=list(HealthCheck),
    )


@quick(10)
@given(typed=st.lists(texts(), min_size=50, max_size=50))
def test_a_compiled_predicate_means_what_was_typed(
    source: Connection, other_session: Connection, table: SourceTable, typed: list[str]
) -> None:
    """The reference is Postgres, given the text as it was typed, under any settings."""
    compiled = [predicate(source, TABLE, table.columns, text) for text in typed]

    expected = answers(source, typed)

    assert (
        differences(expected, answers(other_session, [each.source for each in compiled]), compiled)
        == []
    )
    assert differences(expected, answers(source, [each.text for each in compiled]), compiled) == []
    again = [predicate(source, TABLE, table.columns, each.text) for each in compiled]
    assert again == compiled


@quick(100)
@given(typed=st.lists(texts(), min_size=50, max_size=50))
def test_both_engines_agree_on_every_row(engines: Engines, typed: list[str]) -> None:
    compiled = [predicate(engines.source, TABLE, engines.table.columns, text) for text in typed]

    expected = answers(engines.source, [each.source for each in compiled])
    in_spark = spark_answers(engines, [each.lake for each in compiled])

    assert differences(expected, in_spark, compiled) == []
    few = [each.lake for each in compiled[:5]]
    passing = {(p, n) for n, row in expected.items() for p in range(len(few)) if row[p]}
    assert filtered(engines, few) == passing


def differences(
    expected: Answers, actual: Answers, compiled: Sequence[Predicate]
) -> list[tuple[int, str, str, str]]:
    """Return the rows' ids and the predicates for which the answers differ."""
    assert actual.keys() == expected.keys()
    return [
        (number, each.text, each.source, each.lake)
        for number, row in expected.items()
        for place, each in enumerate(compiled)
        if row[place] is not actual[number][place]
    ]


@pytest.mark.parametrize("word", ["IS NULL", "IS NOT NULL"])
def test_a_composite_of_nulls_is_not_null(engines: Engines, word: str) -> None:
    source = engines.source
    compiled = predicate(source, TABLE, engines.table.columns, f"pair {word}")

    wanted = answers(source, [f"num_nulls(pair) = {int(word == 'IS NULL')}"])

    assert answers(source, [compiled.source]) == wanted
    assert spark_answers(engines, [compiled.lake]) == wanted
    assert wanted != answers(source, [f"pair {word}"])


def test_checked_returns_postgres_s_estimate_of_the_rows(
    source: Connection, table: SourceTable
) -> None:
    every = estimated_rows(source, TABLE, predicate(source, TABLE, table.columns, "id IS NOT NULL"))
    few = estimated_rows(source, TABLE, predicate(source, TABLE, table.columns, "id < 15"))

    assert every == ROWS + 1
    assert few is not None
    assert 10 <= few <= 20


def test_a_predicate_that_postgres_refuses_is_a_config_error(
    source: Connection, table: SourceTable
) -> None:
    compiled = predicate(source, TABLE, table.columns, "mood = 'sad'")

    with pytest.raises(CdcError, match="Postgres refuses") as caught:
        estimated_rows(source, TABLE, compiled)

    assert caught.value.kind is ErrorKind.CONFIG
    assert caught.value.detail == 'invalid input value for enum mood: "sad"'


def test_a_nondeterministic_collation_is_refused(source: Connection) -> None:
    source.execute("""
        CREATE COLLATION loose (provider = icu, locale = 'und', deterministic = false);
        CREATE TABLE loose (id int PRIMARY KEY, name text COLLATE loose)
    """)
    config = Config(source=Source(tables=["predicates.loose"]), lake=Lake(path="/lake"))
    (found,) = inspect(source, config).tables

    assert estimated_rows(
        source, found.table, predicate(source, found.table, found.columns, "id = 1")
    )
    with pytest.raises(CdcError, match="collation is nondeterministic"):
        estimated_rows(
            source, found.table, predicate(source, found.table, found.columns, "name = 'a'")
        )


def test_a_table_that_the_role_may_not_read_is_named(
    source: Connection, table: SourceTable
) -> None:
    compiled = predicate(source, TABLE, table.columns, "id = 1")
    source.execute("CREATE ROLE nobody; SET ROLE nobody")
    try:
        with pytest.raises(CdcError, match="permission denied") as caught:
            estimated_rows(source, TABLE, compiled)
    finally:
        source.execute("RESET ROLE; DROP ROLE nobody")

    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY


def test_every_reserved_word_of_postgres_is_known(source: Connection) -> None:
    """The list is complete for this version of Postgres; later ones may reserve more."""
    words = source.execute("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')")

    assert {word for (word,) in words} <= RESERVED
