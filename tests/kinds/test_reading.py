"""Test rows read from Postgres without the connector: every value as Postgres prints it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column
from cdc.events.values.lake_types import PgType
from cdc.lake.table.merge_plan import REASON
from cdc.operations.resnapshot.values import key_texts, typed
from cdc.source.catalog.catalog import inspect
from cdc.source.rows.reading import read, read_keys
from cdc.source.rows.writing import ReadRows
from tests.kinds.columns import SCHEMA
from tests.kinds.pipeline import Row
from tests.kinds.reading import (
    KEYED,
    ODD,
    READ,
    WHOLE,
    Filled,
    assert_altered_are_reported,
    assert_equal_to_postgres,
    assert_limits_are_reported,
    assert_none_is_refused,
    assert_verify_agrees,
    filled,
    lake_column,
)
from tests.local_spark import local_spark

pytestmark = pytest.mark.integration


@dataclass(frozen=True, kw_only=True)
class Reader(Filled):
    """Reads one Postgres's tables into a lake."""

    spark: SparkSession

    def texts(self, table: str) -> ReadRows:
        """Read the table's rows as texts, into a table beside it."""
        source_table = self.tables[table]
        return read(
            self.connection, source_table.table, self.arriving(table), f"{self.path(table)}.texts"
        )

    def typed(self, table: str) -> DataFrame:
        """Return the texts that were read as typed rows."""
        columns = self.arriving(table)
        texts = DeltaTable(f"{self.path(table)}.texts").to_pyarrow_table()
        frame = self.spark.createDataFrame(texts).coalesce(1)
        return typed(frame, [lake_column(c) for c in columns], [c.pg for c in columns])

    def keep(self, table: str) -> None:
        """Type the texts that were read and write them as the table in the lake."""
        write_deltalake(self.path(table), self.typed(table).toArrow())

    def keep_as_the_job_does(self, table: str) -> None:
        """Do the same by Spark alone, as the job does; it takes seconds for each table."""
        columns = self.arriving(table)
        frame = self.spark.read.format("delta").load(f"{self.path(table)}.texts")
        rows = typed(frame, [lake_column(c) for c in columns], [c.pg for c in columns])
        writer = rows.write.format("delta").option("delta.columnMapping.mode", "name")
        writer.save(self.path(table))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def reader(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    number: int,
) -> Iterator[Reader]:
    """Yield a reader that has read and typed all tables of the schema."""
    with filled(request, tmp_path_factory, number) as found:
        one = Reader(**vars(found), spark=spark)
        for table in READ:
            one.texts(table)
        one.keep_as_the_job_does("every")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one.keep, READ[1:]))
        yield one


@pytest.mark.parametrize("table", WHOLE)
def test_every_value_equals_postgres(reader: Reader, table: str) -> None:
    assert_equal_to_postgres(reader.pipeline, table)


@pytest.mark.parametrize("table", WHOLE)
def test_verify_agrees(reader: Reader, table: str) -> None:
    assert_verify_agrees(reader.verdict(table))


def test_no_row_that_can_be_kept_is_refused(reader: Reader) -> None:
    assert_none_is_refused(reader.pipeline)


def test_a_value_beyond_a_limit_is_reported_and_the_others_are_kept(reader: Reader) -> None:
    assert_limits_are_reported(reader.pipeline)


def test_values_that_the_stream_alters_are_kept_or_reported(reader: Reader) -> None:
    assert_altered_are_reported(reader.pipeline)


def test_wider_columns_take_values_and_others_report_them(
    spark: SparkSession,
) -> None:
    cases: list[tuple[str | None, Column, PgType, Any]] = [
        ("-7", Column("a", "bigint"), PgType("int2"), -7),
        ("0.1", Column("b", "double"), PgType("float4"), 0.10000000149011612),
        ("1.50", Column("c", "decimal(12,4)"), PgType("numeric", 10, 2), "1.5000"),
        ("1.505", Column("d", "decimal(10,2)"), PgType("numeric", 10, 2), None),
        ("123456789.00", Column("e", "decimal(10,2)"), PgType("numeric", 10, 2), None),
        ("7", Column("f", "int"), PgType("int8"), None),
        ("7", Column("g", "string"), PgType("int4"), None),
        ("2020-01-01", Column("h", "string", as_text=True), PgType("date"), "2020-01-01"),
        ("1,1", Column("i", "string"), PgType("point"), None),
        (None, Column("j", "int"), PgType("int8"), None),
        ("[]", Column("k", "array<int>"), PgType("_int4"), "[]"),
        ("[null]", Column("l", "array<int>"), PgType("_int4"), "[None]"),
        ('["2147483648"]', Column("m", "array<int>"), PgType("_int4"), None),
    ]  # fmt: skip
    texts, columns, types, expected = zip(*cases, strict=True)
    rows = [
        tuple(text if at == row else None for at in range(len(cases)))
        for row, text in enumerate(texts)
    ]
    frame = spark.createDataFrame(
        rows, ", ".join(f"c{number} string" for number in range(len(cases)))
    )

    rows_typed = typed(frame.coalesce(1), columns, types).collect()

    refused = {column.name for column, row in zip(columns, rows_typed, strict=True) if row[REASON]}
    assert refused == set("defgim")
    for column, row, value in zip(columns, rows_typed, expected, strict=True):
        assert column.name in refused or str(row[column.name]) == str(value), column
        assert (row[REASON] or f"column {column.name} ").startswith(f"column {column.name} ")


@pytest.mark.parametrize("table", KEYED)
def test_rows_are_read_by_their_keys(reader: Reader, table: str, tmp_path: Path) -> None:
    source_table = reader.tables[table]
    columns = {column.name: column for column in source_table.columns}
    key = [columns[name] for name in source_table.key]
    lake = reader.typed(table).where("id % 3 = 0")
    texts = key_texts(lake, [lake_column(c) for c in key], [c.pg for c in key]).distinct()
    before = reader.pipeline.source(table, WHOLE[table])

    path = str(tmp_path / "texts")
    keys = map(tuple, texts.toLocalIterator())  # read while rows are written, as the job does
    brought = read_keys(
        reader.connection, source_table.table, reader.arriving(table), source_table.key, keys, path
    )
    ids = {row["c0"] for row in _texts(path)}

    assert texts.count() == 10
    assert brought.rows == 10
    assert ids == {str(number) for number in before if number % 3 == 0}


def test_keys_are_looked_up_once_and_by_the_index(reader: Reader, tmp_path: Path) -> None:
    reader.pipeline.execute(f"""
        CREATE TABLE {SCHEMA}.wide (k citext, d {SCHEMA}.d_int, t text, PRIMARY KEY (k, d))
               WITH (fillfactor = 10);
        INSERT INTO {SCHEMA}.wide SELECT 'k' || g, g, repeat('x', 100)
          FROM generate_series(1, 50000) g;
        ANALYZE {SCHEMA}.wide
    """)
    tables = inspect(reader.connection, reader.pipeline.config).tables
    [wide] = [table for table in tables if table.table.name == "wide"]
    path = str(tmp_path / "texts")
    keys = [[f"K{number}", str(number)] for number in range(49_001, 51_001)]
    scans = f"SELECT seq_scan FROM pg_stat_user_tables WHERE relid = '{SCHEMA}.wide'::regclass"
    flush = "SELECT pg_stat_force_next_flush()"

    reader.connection.execute(flush)
    before = reader.connection.execute(scans.encode()).fetchone()
    progress: list[tuple[int, int, int]] = []
    brought = read_keys(
        reader.connection,
        wide.table,
        wide.columns,
        wide.key,
        [*keys[:500], *keys],  # different texts may be one key to Postgres
        path,
        tell=lambda *counts: progress.append(counts),
    )
    reader.connection.execute(flush)

    assert brought.rows == 1000
    assert [row["c0"] for row in _texts(path)].count("k50000") == 1
    assert [(chunks, rows) for chunks, rows, _ in progress] == [(1, 500), (2, 1000)]
    assert reader.connection.execute(scans.encode()).fetchone() == before


def test_an_invalid_key_is_an_error_that_does_not_show_it(reader: Reader, tmp_path: Path) -> None:
    table = reader.tables["defaults"]
    with pytest.raises(CdcError) as caught:
        read_keys(
            reader.connection,
            table.table,
            reader.arriving("defaults"),
            ["id"],
            [["secret"]],
            str(tmp_path / "texts"),
        )

    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert "secret" not in str(caught.value)


def test_reading_by_a_key_needs_its_unique_index(reader: Reader, tmp_path: Path) -> None:
    table = reader.tables["defaults"]
    columns = reader.arriving("defaults")
    path = str(tmp_path / "texts")

    with pytest.raises(CdcError, match="no unique index on exactly these columns: n"):
        read_keys(reader.connection, table.table, columns, ["n"], [["1"]], path)


def test_a_table_without_rows_keeps_its_columns(reader: Reader) -> None:
    assert reader.texts("empty") == ReadRows()

    assert _texts(f"{reader.path('empty')}.texts") == []
    assert reader.typed("empty").columns == ["id", f"o'{ODD}", REASON]


def test_a_single_column_keeps_null_empty_text_and_line_ends(reader: Reader) -> None:
    reader.texts("only")

    values = [row["c0"] for row in _texts(f"{reader.path('only')}.texts")]
    assert len(values) == 5
    assert set(values) == {None, "", "\\.", '"a",\r\n', "NULL"}


def test_a_reading_is_written_in_parts_and_can_be_ended_between_them(
    reader: Reader, tmp_path: Path
) -> None:
    table, path = reader.tables["every"], str(tmp_path / "texts")
    columns = reader.arriving("every")
    progress: list[tuple[int, int, int]] = []

    whole = read(
        reader.connection,
        table.table,
        columns,
        path,
        tell=lambda *counts: progress.append(counts),
        batch_bytes=20_000,
    )

    assert len(progress) > 2
    assert progress[-1] == (whole.chunks, whole.rows, whole.bytes)
    assert DeltaTable(path).version() == 1
    assert len(_texts(path)) == whole.rows

    def end_after_two(chunks: int, rows: int, size: int) -> None:
        del rows, size
        if chunks == 2:
            raise CdcError(ErrorKind.CONFLICT, "ended")

    with pytest.raises(CdcError, match="ended"):
        read(reader.connection, table.table, columns, path, tell=end_after_two, batch_bytes=20_000)
    assert _texts(path) == []
    assert reader.connection.execute("SELECT 1").fetchone() == (1,)


def test_a_repeated_reading_of_part_of_a_table_replaces_the_first(
    reader: Reader, tmp_path: Path
) -> None:
    table, path = reader.tables["keyed"], str(tmp_path / "texts")
    columns = reader.arriving("keyed")
    where = sql.SQL("{} > 20 AND h = 'sad'").format(sql.Identifier("id"))

    for _ in range(2):
        assert read(reader.connection, table.table, columns, path, where=where).rows == 10
    assert sorted(int(row["c0"]) for row in _texts(path)) == list(range(21, 31))


def _texts(path: str) -> list[Row]:
    return list(DeltaTable(path).to_pyarrow_table().to_pylist())
