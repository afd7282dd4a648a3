"""Test rows read by COPY and converted in Arrow: every value as Postgres prints it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg import sql

from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.events.schema import Column
from cdc.events.values.lake_types import PgType
from cdc.lake.layout import table_path
from cdc.lake.records.ledger import TableEntry
from cdc.lake.table.merge_plan import REASON
from cdc.operations.resnapshot.arrow_values import arrow_rows
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.rows.copy import blocks, copy_list, names, own_rows, parsed, respelled, select_list
from cdc.source.server.connection import Connection, connect
from cdc.source.server.printing import READING
from cdc.state import pipeline as pipelines
from cdc.tables import TableId
from tests.kinds import special
from tests.kinds.columns import SCHEMA
from tests.kinds.pipeline import Pipeline
from tests.kinds.reading import (
    ALTERED,
    EXACT,
    LIMITS,
    READ,
    WHOLE,
    WORDS,
    config_of,
    endpoints_of,
    fill,
    lake_column,
    unlike,
)
from tests.servers.fixtures import started

pytestmark = pytest.mark.integration


@dataclass(kw_only=True)
class Copier:
    """Copies the tables of one Postgres into a lake."""

    pipeline: Pipeline
    connection: Connection
    tables: dict[str, SourceTable] = field(default_factory=dict)

    def texts(self, table: str, *, spelled: bool = False) -> pa.Table:
        """Return the rows as texts, as a COPY or, ``spelled``, as a resnapshot asks for them."""
        source = self.tables[table]
        columns = [column for column in source.columns if column.arrives]
        listed = (select_list if spelled else copy_list)(columns)
        order = sql.SQL("ctid")
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
            listed, own_rows(source.table), order
        )
        parts = [
            respelled(parsed(block, names(len(columns)), pa.string()), columns)
            for block in blocks(self.connection, query, "copying", block_bytes=10_000)
        ]
        return pa.concat_tables(parts)

    def keep(self, table: str) -> None:
        """Write the table to the lake, with a column for the reason why a row is refused."""
        columns = [column for column in self.tables[table].columns if column.arrives]
        made = arrow_rows(
            self.texts(table), [lake_column(c) for c in columns], [c.pg for c in columns]
        )
        write_deltalake(self.path(table), made.rows.append_column(REASON, made.reasons))

    def path(self, table: str) -> str:
        """Return the table's path in the lake."""
        return table_path(self.pipeline.config, TableId(SCHEMA, table))

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
def copier(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, number: int
) -> Iterator[Copier]:
    """Yield a copier that has copied all tables of the schema."""
    folder = tmp_path_factory.mktemp("copied")
    with started(request, tmp_path_factory.mktemp("servers"), ("postgres",)) as servers:
        url = servers["postgres"].address
        pipeline = Pipeline(given=pipelines.Pipeline(config_of(folder, url), endpoints_of(url)))
        fill(pipeline, number)
        with connect(url) as connection:
            for name, value in READING.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            one = Copier(pipeline=pipeline, connection=connection)
            tables = inspect(connection, pipeline.config).tables
            one.tables = {table.table.name: table for table in tables}
            for table in READ:
                one.keep(table)
            yield one


@pytest.mark.parametrize("table", WHOLE)
def test_every_copied_value_equals_postgres(copier: Copier, table: str) -> None:
    there = copier.pipeline.source(table, WHOLE[table])
    here = copier.pipeline.lake(table, WHOLE[table])

    assert len(there) > 1
    assert unlike(there, here) == {}


@pytest.mark.parametrize("table", WHOLE)
def test_verify_agrees_with_what_was_copied(copier: Copier, table: str) -> None:
    verdict = copier.verdict(table)

    assert verdict.comparison.source_rows > 1
    assert verdict.equal


@pytest.mark.parametrize("table", READ)
def test_copy_has_the_texts_of_a_resnapshot(copier: Copier, table: str) -> None:
    texts = copier.texts(table)

    assert texts.num_rows > 1
    assert texts == copier.texts(table, spelled=True)


def test_no_copied_row_that_can_be_kept_is_refused(copier: Copier) -> None:
    reasons = {row[REASON] for table in WHOLE for row in copier.pipeline.lake_rows(table)}

    assert reasons == {None}


def test_a_copied_value_beyond_a_limit_is_reported(copier: Copier) -> None:
    there = copier.pipeline.source("limits", LIMITS)
    rows = {row["id"]: row for row in copier.pipeline.lake_rows("limits")}
    kept = {number for number, row in rows.items() if row[REASON] is None}

    for number, (name, text) in enumerate(special.limit_values(), start=1):
        column, reason = f"v_{name}", rows[number][REASON]
        if column in EXACT or "{NULL" in text:
            assert reason is None, (column, text)
        elif column in WORDS:
            assert reason == f"column {column} holds a value that {WORDS[column]}"
        else:
            assert reason.startswith(f"column {column} holds a value that array<")
    here = copier.pipeline.lake("limits", LIMITS)
    assert 0 in kept
    assert unlike({n: there[n] for n in kept}, {n: here[n] for n in kept}) == {}


def test_copied_values_that_the_stream_alters_are_kept_or_reported(copier: Copier) -> None:
    there = copier.pipeline.source("altered", ALTERED)
    rows = {row["id"]: row for row in copier.pipeline.lake_rows("altered")}
    reasons = [(rows[number][REASON] or "")[:9] for number in sorted(rows)]
    here = copier.pipeline.lake("altered", ALTERED)

    assert reasons == ["", "column d ", "column a ", "", ""]
    assert {n for n in there if there[n] != here[n]} == {2, 3}


@pytest.mark.parametrize(
    ("text", "column", "pg", "expected"),
    [
        ("-7", Column("a", "bigint"), PgType("int2"), "-7"),
        ("0.1", Column("a", "double"), PgType("float4"), "0.10000000149011612"),
        ("1.50", Column("a", "decimal(12,4)"), PgType("numeric", 10, 2), "1.5000"),
        ("1.505", Column("a", "decimal(10,2)"), PgType("numeric", 10, 2), None),
        ("123456789.00", Column("a", "decimal(10,2)"), PgType("numeric", 10, 2), None),
        ("7", Column("a", "int"), PgType("int8"), None),
        ("7", Column("a", "string"), PgType("int4"), None),
        ("2020-01-01", Column("a", "string", as_text=True), PgType("date"), "2020-01-01"),
        ("0044-03-15 BC", Column("a", "date"), PgType("date"), None),
        ("1,1", Column("a", "string"), PgType("point"), None),
        ("\\x00FF", Column("a", "binary"), PgType("bytea"), str(b"\0\xff")),
        ("\\x00F", Column("a", "binary"), PgType("bytea"), None),
        ("[]", Column("a", "array<int>"), PgType("_int4"), "[]"),
        ("[null]", Column("a", "array<int>"), PgType("_int4"), "[None]"),
        ('["2147483648"]', Column("a", "array<int>"), PgType("_int4"), None),
        ("odd", Column("a", "array<int>"), PgType("_int4"), None),
    ],
)
def test_a_value_is_kept_exactly_or_reported_whatever_is_beside_it(
    text: str, column: Column, pg: PgType, expected: str | None
) -> None:
    fine = {"binary": "\\x", "array<int>": '["1"]', "date": "2020-02-29"}.get(column.type, "1")
    texts = pa.table({"c0": pa.array([None, fine, text, None, fine], pa.string())})

    made = arrow_rows(texts, [column], [pg])

    values = [None if v is None else str(v) for v in made.rows.column(0).to_pylist()]
    reasons = made.reasons.to_pylist()
    assert (values[0], reasons[0]) == (values[3], reasons[3]) == (None, None)
    assert expected is None or values[2] == expected
    assert (reasons[2] is None) == (expected is not None)
    assert (values[1], reasons[1]) == (values[4], reasons[4])
