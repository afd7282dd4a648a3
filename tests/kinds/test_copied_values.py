"""Test rows read by COPY and converted in Arrow: every value as Postgres prints it."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from psycopg import sql

from cdc.apply.local.identity import key_of
from cdc.events.schema import Column, TableSchema
from cdc.events.values.lake_types import PgType
from cdc.lake.table.merge_plan import REASON
from cdc.lake.table.plain_values import plain_values
from cdc.operations.resnapshot.arrow_values import arrow_rows
from cdc.operations.resnapshot.small_keys import held_keys, wanted_rows
from cdc.source.rows.copied_texts import copied_texts
from cdc.source.rows.copy import blocks, copy_list, names, own_rows, parsed, respelled, select_list
from cdc.tables import TableMode
from tests.kinds.reading import (
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

pytestmark = pytest.mark.integration


@dataclass(frozen=True, kw_only=True)
class Copier(Filled):
    """Copies the tables of one Postgres into a lake."""

    def texts(self, table: str, *, spelled: bool = False) -> pa.Table:
        """Return the rows as texts, as a COPY or, ``spelled``, as a resnapshot asks for them."""
        columns = self.arriving(table)
        listed = (select_list if spelled else copy_list)(columns)
        order = sql.SQL("ctid")
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
            listed, own_rows(self.tables[table].table), order
        )
        parts = [
            respelled(parsed(block, names(len(columns)), pa.string()), columns)
            for block in blocks(self.connection, query, "copying", block_bytes=10_000)
        ]
        return pa.concat_tables(parts)

    def keep(self, table: str) -> None:
        """Write the table to the lake, with a column for the reason why a row is refused."""
        columns = self.arriving(table)
        made = arrow_rows(
            self.texts(table), [lake_column(c) for c in columns], [c.pg for c in columns]
        )
        write_deltalake(self.path(table), made.rows.append_column(REASON, made.reasons))


@pytest.fixture(scope="module")
def copier(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, number: int
) -> Iterator[Copier]:
    """Yield a copier that has copied all tables of the schema."""
    with filled(request, tmp_path_factory, number) as found:
        one = Copier(**vars(found))
        for table in READ:
            one.keep(table)
        yield one


@pytest.mark.parametrize("table", WHOLE)
def test_every_copied_value_equals_postgres(copier: Copier, table: str) -> None:
    assert_equal_to_postgres(copier.pipeline, table)


@pytest.mark.parametrize("table", WHOLE)
def test_verify_agrees_with_what_was_copied(copier: Copier, table: str) -> None:
    assert_verify_agrees(copier.verdict(table))


@pytest.mark.parametrize("table", READ)
def test_copy_has_the_texts_of_a_resnapshot(copier: Copier, table: str) -> None:
    texts = copier.texts(table)

    assert texts.num_rows > 1
    assert texts == copier.texts(table, spelled=True)


def test_no_copied_row_that_can_be_kept_is_refused(copier: Copier) -> None:
    assert_none_is_refused(copier.pipeline)


def test_a_copied_value_beyond_a_limit_is_reported(copier: Copier) -> None:
    assert_limits_are_reported(copier.pipeline)


def test_copied_values_that_the_stream_alters_are_kept_or_reported(copier: Copier) -> None:
    assert_altered_are_reported(copier.pipeline)


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


def test_rows_are_copied_by_their_keys(copier: Copier) -> None:
    """Their keys, as texts, find them in the source and in the lake."""
    source, columns = copier.tables["keyed"], copier.arriving("keyed")
    kept = [lake_column(column) for column in columns]
    schema = TableSchema(
        table=source.table, columns=tuple(kept), key=source.key, mode=TableMode.KEYED
    )
    texts = copier.texts("keyed")
    third = texts.filter(pa.array([int(one) % 3 == 0 for one in texts["c0"].to_pylist()]))
    of_key = [third.column(schema.names.index(name)).to_pylist() for name in schema.key]
    keys = list(zip(*of_key, strict=True))

    wanted = wanted_rows(copier.connection, schema, keys)
    found = pa.concat_tables(copied_texts(copier.connection, source.table, columns, wanted))
    followed = [
        SimpleNamespace(name=column.name, column=lake, pg=column.pg)
        for column, lake in zip(columns, kept, strict=True)
    ]
    target: Any = SimpleNamespace(schema=schema, structure=SimpleNamespace(followed=followed))
    held = arrow_rows(third, kept, [column.pg for column in columns]).rows
    rows = zip(*map(plain_values, held.columns), strict=True)

    assert found.num_rows == 10
    assert found.sort_by("c0").equals(third.sort_by("c0"))
    assert held_keys(target, keys) == set(map(key_of(schema), rows))
