"""Test rows read from Postgres without the connector: every value as Postgres prints it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column
from cdc.events.structure.declared import SourceColumn
from cdc.events.values.lake_types import PgType
from cdc.lake.layout import table_path
from cdc.lake.records.ledger import TableEntry
from cdc.lake.table.merge_plan import REASON
from cdc.operations.resnapshot.values import key_texts, typed
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.rows.reading import read, read_keys
from cdc.source.rows.writing import ReadRows
from cdc.source.server.connection import Connection, connect
from cdc.source.server.printing import READING
from cdc.state import pipeline as pipelines
from cdc.tables import TableId
from tests.kinds import special
from tests.kinds.columns import SCHEMA
from tests.kinds.pipeline import Pipeline, Row
from tests.kinds.reading import (
    ALTERED,
    EXACT,
    KEYED,
    LIMITS,
    ODD,
    READ,
    WHOLE,
    WORDS,
    config_of,
    endpoints_of,
    fill,
    lake_column,
    unlike,
)
from tests.local_spark import local_spark
from tests.servers.fixtures import started

pytestmark = pytest.mark.integration


@dataclass(kw_only=True)
class Reader:
    """A reader of one Postgres's tables into a lake."""

    pipeline: Pipeline
    spark: SparkSession
    connection: Connection
    tables: dict[str, SourceTable] = field(default_factory=dict)

    def arriving(self, table: str) -> list[SourceColumn]:
        """Return the columns that arrive in the lake."""
        return [column for column in self.tables[table].columns if column.arrives]

    def path(self, table: str) -> str:
        """Return the table's path in the lake."""
        return table_path(self.pipeline.config, TableId(SCHEMA, table))

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

    def verdict(self, table: str) -> TableVerdict:
        """Compare the table with the source as ``verify`` does."""
        path = self.path(table)
        entry = TableEntry(
            table=f"{SCHEMA}.{table}",
            path=path,
            version=DeltaTable(path).version(),
            offset=0,
            state="streaming",
        )
        folder = Path(self.pipeline.config.state_dir)
        return compare_table(self.connection, self.tables[table], entry, folder)


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
    folder = tmp_path_factory.mktemp("reading")
    with started(request, tmp_path_factory.mktemp("servers"), ("postgres",)) as servers:
        url = servers["postgres"].address
        given = pipelines.Pipeline(config_of(folder, url), endpoints_of(url))
        pipeline = Pipeline(given=given)
        fill(pipeline, number)
        with connect(url) as connection:
            for name, value in READING.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            one = Reader(pipeline=pipeline, spark=spark, connection=connection)
            tables = inspect(connection, pipeline.config).tables
            one.tables = {table.table.name: table for table in tables}
            for table in READ:
                one.texts(table)
            one.keep_as_the_job_does("every")
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one.keep, READ[1:]))
            yield one


@pytest.mark.parametrize("table", WHOLE)
def test_every_value_equals_postgres(reader: Reader, table: str) -> None:
    there = reader.pipeline.source(table, WHOLE[table])
    here = reader.pipeline.lake(table, WHOLE[table])

    assert len(there) > 1
    assert unlike(there, here) == {}


@pytest.mark.parametrize("table", WHOLE)
def test_verify_agrees(reader: Reader, table: str) -> None:
    verdict = reader.verdict(table)

    assert verdict.comparison.source_rows > 1
    assert verdict.equal


def test_no_row_that_can_be_kept_is_refused(reader: Reader) -> None:
    reasons = {row[REASON] for table in WHOLE for row in reader.pipeline.lake_rows(table)}

    assert reasons == {None}


def test_a_value_beyond_a_limit_is_reported_and_the_others_are_kept(reader: Reader) -> None:
    there = reader.pipeline.source("limits", LIMITS)
    rows = {row["id"]: row for row in reader.pipeline.lake_rows("limits")}
    kept = {number for number, row in rows.items() if row[REASON] is None}

    for number, (name, text) in enumerate(special.limit_values(), start=1):
        column, reason = f"v_{name}", rows[number][REASON]
        if column in EXACT or "{NULL" in text:
            assert reason is None, (column, text)
        elif column in WORDS:
            assert reason == f"column {column} holds a value that {WORDS[column]}"
        else:
            assert reason.startswith(f"column {column} holds a value that array<")
            assert " cannot represent: several dimensions, " in reason
    here = reader.pipeline.lake("limits", LIMITS)
    assert 0 in kept
    assert unlike({n: there[n] for n in kept}, {n: here[n] for n in kept}) == {}


def test_values_that_the_stream_alters_are_kept_or_reported(reader: Reader) -> None:
    there = reader.pipeline.source("altered", ALTERED)
    rows = {row["id"]: row for row in reader.pipeline.lake_rows("altered")}
    reasons = [(rows[number][REASON] or "")[:9] for number in sorted(rows)]
    here = reader.pipeline.lake("altered", ALTERED)

    assert reasons == ["", "column d ", "column a ", "", ""]
    assert {n for n in there if there[n] != here[n]} == {2, 3}


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
