"""Rows read from Postgres and typed without the connector: every value as Postgres writes it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import strategies as st
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column
from cdc.events.structure.declared import SourceColumn
from cdc.events.values.lake_types import PgType
from cdc.lake.layout import table_path
from cdc.lake.records.ledger import TableEntry
from cdc.lake.table.merge_plan import REASON
from cdc.operations.resnapshot.values import key_texts, typed
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.rows.reading import ReadRows, read, read_keys
from cdc.source.server.connection import Connection, connect
from cdc.source.server.printing import READING
from cdc.state import pipeline as pipelines
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId
from tests.kinds import special
from tests.kinds.columns import SCHEMA, SETUP, TABLES, Kind, kind
from tests.kinds.pipeline import Pipeline, Row, different, made
from tests.local_spark import local_spark
from tests.servers.fixtures import started

pytestmark = pytest.mark.integration

ODD = "`%s{c}$"  # a column may have any name
EVERY = {
    f"{table}.{name}{ODD}": found
    for table, kinds in TABLES.items()
    for name, found in kinds.items()
}
LIMITS = {
    f"v_{name}": kind(declared, st.nothing()) for name, (declared, _) in special.LIMITS.items()
}
ALTERED = special.kinds(special.ALTERED)
MORE_KEYS = {
    "a": ("citext", "'Ab' || g"),
    "b": ("ltree", "('a.b' || g)::ltree"),
    "c": ("hstore", """hstore('k"\\ ' || g, nullif(g, 3)::text)"""),
    "d": ("text[]", """ARRAY['a"\\,' || g, NULL, 'NULL']"""),
    "e": ("bytea[]", "ARRAY['\\x00ff'::bytea]"),
    "f": ("date[]", "ARRAY[date '2020-01-01' + g, NULL]"),
    "g": ("money", "g::numeric::money / 8"),
    "h": ("float8", "1.0 / g"),
    "i": ("bool", "g % 2 = 0"),
    "j": ("timestamp", "timestamp '0001-01-01' + g * interval '1 microsecond'"),
    "k": ("oid", "(4294967295 - g)::oid"),
    "l": ('"char"', '(g - 60)::"char"'),
    "m": ("int4range", "int4range(g, g * 2)"),
    "q": ("varchar(20)", "'v' || g"),
    "o": (f"{SCHEMA}.d_blank", "'a'"),
    "p": ("numeric", "g / 3.0"),
}  # fmt: skip
KEYED = {"keyed": special.KEYS, "more_keys": MORE_KEYS}
WHOLE: dict[str, dict[str, Kind]] = {
    "every": EVERY,
    "large": special.kinds(special.LARGE),
    "defaults": special.kinds(special.DEFAULTS),
    "nulls": special.kinds(special.DEFAULTS),
    **{table: special.kinds(columns) for table, columns in KEYED.items()},
}
"""Tables of which everything can be kept."""
READ = (*WHOLE, "limits", "altered")


@dataclass(kw_only=True)
class Reader:
    """Reads tables of one Postgres into a lake."""

    pipeline: Pipeline
    spark: SparkSession
    connection: Connection
    tables: dict[str, SourceTable] = field(default_factory=dict)

    def arriving(self, table: str) -> list[SourceColumn]:
        return [column for column in self.tables[table].columns if column.arrives]

    def path(self, table: str) -> str:
        return table_path(self.pipeline.config, TableId(SCHEMA, table))

    def texts(self, table: str) -> ReadRows:
        found = self.tables[table]
        return read(self.connection, found.table, self.arriving(table), f"{self.path(table)}.texts")

    def typed(self, table: str) -> DataFrame:
        columns = self.arriving(table)
        texts = DeltaTable(f"{self.path(table)}.texts").to_pyarrow_table()
        frame = self.spark.createDataFrame(texts).coalesce(1)
        return typed(frame, [lake_column(c) for c in columns], [c.pg for c in columns])

    def keep(self, table: str) -> None:
        """Type what was read and write it where the lake has its tables."""
        write_deltalake(self.path(table), self.typed(table).toArrow())

    def keep_as_the_job_does(self, table: str) -> None:
        """By Spark alone, which takes seconds for each table."""
        columns = self.arriving(table)
        frame = self.spark.read.format("delta").load(f"{self.path(table)}.texts")
        rows = typed(frame, [lake_column(c) for c in columns], [c.pg for c in columns])
        writer = rows.write.format("delta").option("delta.columnMapping.mode", "name")
        writer.save(self.path(table))

    def verdict(self, table: str) -> TableVerdict:
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


def lake_column(column: SourceColumn) -> Column:
    return Column(column.name, column.type, as_text=column.is_text)


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
    """With all tables of the schema read and typed."""
    folder = tmp_path_factory.mktemp("reading")
    with started(request, tmp_path_factory.mktemp("servers"), ("postgres",)) as servers:
        url = servers["postgres"].address
        given = pipelines.Pipeline(_config(folder, url), _endpoints(url))
        pipeline = Pipeline(given=given)
        _fill(pipeline, number)
        with connect(url) as connection:
            for name, value in READING.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            found = Reader(pipeline=pipeline, spark=spark, connection=connection)
            tables = inspect(connection, pipeline.config).tables
            found.tables = {table.table.name: table for table in tables}
            for table in READ:
                found.texts(table)
            found.keep_as_the_job_does("every")
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(found.keep, READ[1:]))
            yield found


def _config(folder: Path, url: str) -> Config:
    as_text = [f"{SCHEMA}.every.chosen.*_text*", f"{SCHEMA}.*.*far_text"]
    source = Source(url=url, tables=[f"{SCHEMA}.*"], as_text=as_text)
    return Config(source=source, lake=Lake(path=str(folder / "lake")), state_dir=folder)


def _endpoints(url: str) -> Endpoints:
    nowhere = "127.0.0.1:1"
    return Endpoints(
        source_url=url, kafka=nowhere, registry=f"http://{nowhere}", connect=f"http://{nowhere}"
    )


def _fill(pipeline: Pipeline, number: int) -> None:
    pipeline.execute(SETUP)
    pipeline.create("every", EVERY)
    pipeline.insert("every", made(EVERY, number))
    special.create(pipeline)
    columns = ", ".join(f"{name} {declared}" for name, (declared, _) in MORE_KEYS.items())
    values = ", ".join(value for _, value in MORE_KEYS.values())
    pipeline.execute(f"""
        INSERT INTO {SCHEMA}.defaults VALUES (2, 0); INSERT INTO {SCHEMA}.large (id) VALUES (0);
        CREATE TABLE {SCHEMA}.more_keys
               (id int, n int, {columns}, PRIMARY KEY ({", ".join(MORE_KEYS)}));
        INSERT INTO {SCHEMA}.more_keys SELECT g, 0, {values} FROM generate_series(1, 30) g;
        CREATE TABLE {SCHEMA}.empty (id int PRIMARY KEY, "o'{ODD}" text);
        CREATE TABLE {SCHEMA}.only (t text);
        INSERT INTO {SCHEMA}.only VALUES (NULL), (''), ('\\.'), (E'"a",\\r\\n'), ('NULL');
    """)


@pytest.mark.parametrize("table", WHOLE)
def test_every_value_is_that_of_postgres(reader: Reader, table: str) -> None:
    there = reader.pipeline.source(table, WHOLE[table])
    here = reader.pipeline.lake(table, WHOLE[table])

    assert len(there) > 1
    assert _unlike(there, here) == {}


@pytest.mark.parametrize("table", WHOLE)
def test_verify_says_the_same(reader: Reader, table: str) -> None:
    verdict = reader.verdict(table)

    assert verdict.comparison.source_rows > 1
    assert verdict.equal


def test_no_row_is_refused_that_can_be_kept(reader: Reader) -> None:
    reasons = {row[REASON] for table in WHOLE for row in reader.pipeline.lake_rows(table)}

    assert reasons == {None}


WORDS = {
    "v_numeric": "decimal(10,2) cannot represent: NaN, infinity, or too many digits",
    "v_date": "date cannot represent: infinity, or a year outside 1 to 9999",
    "v_timestamp": "timestamp_ntz cannot represent: infinity, or a year outside 1 to 9999",
    "v_timestamptz": "timestamp cannot represent: infinity, or a year outside 1 to 9999",
}
EXACT = {"v_far_text", "v_d_numeric", "v_d_text"}
"""What the connector's event does not tell apart, and Postgres does."""


def test_a_value_beyond_a_limit_is_told_and_the_others_are_kept(reader: Reader) -> None:
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
    assert _unlike({n: there[n] for n in kept}, {n: here[n] for n in kept}) == {}


def test_what_the_stream_alters_is_kept_or_told(reader: Reader) -> None:
    there = reader.pipeline.source("altered", ALTERED)
    rows = {row["id"]: row for row in reader.pipeline.lake_rows("altered")}
    reasons = [(rows[number][REASON] or "")[:9] for number in sorted(rows)]
    here = reader.pipeline.lake("altered", ALTERED)

    assert reasons == ["", "column d ", "column a ", "", ""]
    assert {n for n in there if there[n] != here[n]} == {2, 3}


def test_columns_that_are_wider_than_the_source_and_columns_that_are_not(
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

    found = typed(frame.coalesce(1), columns, types).collect()

    told = {column.name for column, row in zip(columns, found, strict=True) if row[REASON]}
    assert told == set("defgim")
    for column, row, value in zip(columns, found, expected, strict=True):
        assert column.name in told or str(row[column.name]) == str(value), column
        assert (row[REASON] or f"column {column.name} ").startswith(f"column {column.name} ")


@pytest.mark.parametrize("table", KEYED)
def test_rows_are_found_again_by_their_keys(reader: Reader, table: str, tmp_path: Path) -> None:
    found = reader.tables[table]
    columns = {column.name: column for column in found.columns}
    key = [columns[name] for name in found.key]
    lake = reader.typed(table).where("id % 3 = 0")
    texts = key_texts(lake, [lake_column(c) for c in key], [c.pg for c in key]).distinct()
    before = reader.pipeline.source(table, WHOLE[table])

    path = str(tmp_path / "texts")
    keys = map(tuple, texts.toLocalIterator())  # while the rows are being written, as the job does
    brought = read_keys(
        reader.connection, found.table, reader.arriving(table), found.key, keys, path
    )
    ids = {row["c0"] for row in _texts(path)}

    assert texts.count() == 10
    assert brought.rows == 10
    assert ids == {str(number) for number in before if number % 3 == 0}


def test_keys_are_looked_up_in_the_index_and_each_once(reader: Reader, tmp_path: Path) -> None:
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
    told: list[tuple[int, int, int]] = []
    brought = read_keys(
        reader.connection,
        wide.table,
        wide.columns,
        wide.key,
        [*keys[:500], *keys],  # as texts that are one key to Postgres may come
        path,
        tell=lambda *said: told.append(said),
    )
    reader.connection.execute(flush)

    assert brought.rows == 1000
    assert [row["c0"] for row in _texts(path)].count("k50000") == 1
    assert [(chunks, rows) for chunks, rows, _ in told] == [(1, 500), (2, 1000)]
    assert reader.connection.execute(scans.encode()).fetchone() == before


def test_a_key_that_is_no_value_is_told_without_being_shown(reader: Reader, tmp_path: Path) -> None:
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


def test_a_table_without_such_a_key_is_told(reader: Reader, tmp_path: Path) -> None:
    table = reader.tables["defaults"]
    columns = reader.arriving("defaults")
    path = str(tmp_path / "texts")

    with pytest.raises(CdcError, match="no unique index on exactly these columns: n"):
        read_keys(reader.connection, table.table, columns, ["n"], [["1"]], path)


def test_a_table_without_rows_is_a_table_with_columns(reader: Reader) -> None:
    assert reader.texts("empty") == ReadRows()

    assert _texts(f"{reader.path('empty')}.texts") == []
    assert reader.typed("empty").columns == ["id", f"o'{ODD}", REASON]


def test_one_column_alone_keeps_null_the_empty_text_and_line_ends(reader: Reader) -> None:
    reader.texts("only")

    found = [row["c0"] for row in _texts(f"{reader.path('only')}.texts")]
    assert len(found) == 5
    assert set(found) == {None, "", "\\.", '"a",\r\n', "NULL"}


def test_a_reading_is_written_in_parts_and_can_be_ended_in_between(
    reader: Reader, tmp_path: Path
) -> None:
    table, path = reader.tables["every"], str(tmp_path / "texts")
    columns = reader.arriving("every")
    told: list[tuple[int, int, int]] = []

    whole = read(
        reader.connection,
        table.table,
        columns,
        path,
        tell=lambda *said: told.append(said),
        batch_bytes=20_000,
    )

    assert len(told) > 2
    assert told[-1] == (whole.chunks, whole.rows, whole.bytes)
    assert DeltaTable(path).version() == 1
    assert len(_texts(path)) == whole.rows

    def enough(chunks: int, rows: int, size: int) -> None:
        del rows, size
        if chunks == 2:
            raise CdcError(ErrorKind.CONFLICT, "ended")

    with pytest.raises(CdcError, match="ended"):
        read(reader.connection, table.table, columns, path, tell=enough, batch_bytes=20_000)
    assert _texts(path) == []
    assert reader.connection.execute("SELECT 1").fetchone() == (1,)


def test_a_part_of_a_table_and_a_reading_that_is_made_anew(reader: Reader, tmp_path: Path) -> None:
    table, path = reader.tables["keyed"], str(tmp_path / "texts")
    columns = reader.arriving("keyed")
    where = sql.SQL("{} > 20 AND h = 'sad'").format(sql.Identifier("id"))

    for _ in range(2):
        assert read(reader.connection, table.table, columns, path, where=where).rows == 10
    assert sorted(int(row["c0"]) for row in _texts(path)) == list(range(21, 31))


def _texts(path: str) -> list[Row]:
    return list(DeltaTable(path).to_pyarrow_table().to_pylist())


def _unlike(there: dict[int, Row], here: dict[int, Row]) -> dict[int, Any]:
    return {
        number: different(there.get(number), here.get(number))
        for number in there.keys() | here.keys()
        if there.get(number) != here.get(number)
    }
