"""Test the pure part of ``tests/soak``, which chooses changes from facts and a seed."""

import random
from collections import Counter

import pytest

from tests.soak.schema.facts import Column, Database, Reference, Table, identifier, literal
from tests.soak.schema.rows import row_change
from tests.soak.schema.structures import structure_change, wider
from tests.soak.schema.transactions import transaction
from tests.soak.schema.values import digits, new_value

ID = Column(name="id", type="integer", base="int4", not_null=True)
NUMBERED = Column(name="no", type="bigint", base="int8", not_null=True, generated=True)
NAME = Column(name='the "name"', type="varchar(5)", base="varchar", modifier=9, not_null=True)
PRICE = Column(name="price", type="numeric(6,2)", base="numeric", modifier=(6 << 16 | 2) + 4)
UP = Column(
    name="up",
    type="integer",
    base="int4",
    references=Reference(table='"s"."other"', column="key", rows=3),
)
OURS = Column(name="soak_1", type="real", base="float4")
TABLE = Table(
    schema="s",
    name="Thing",
    columns=(ID, NUMBERED, NAME, PRICE, UP, OURS),
    key=("id",),
    unique=frozenset({"id"}),
    rows=10,
)
ROOT = Table(schema="s", name="root", columns=(ID,), partitioned=True, range_of="date")
PART = Table(schema="s", name="part", columns=(ID,), parent='"s"."root"', bound="DEFAULT")
DATABASE = Database(
    tables=(TABLE, ROOT, PART), own_types=(("mood", ("good", "it's")), ("year", ()))
)


def test_the_same_seed_chooses_the_same() -> None:
    def chosen() -> list[object]:
        rng = random.Random(7)
        rows = [transaction(DATABASE, rng) for _ in range(50)]
        return [rows, [structure_change(DATABASE, rng, number) for number in range(50)]]

    assert chosen() == chosen()


def test_every_kind_of_change_is_chosen() -> None:
    rng = random.Random(1)
    rows = Counter(row_change(TABLE, rng).kind for _ in range(2000))
    structures = Counter(
        structure_change(DATABASE, rng, number).statement.kind for number in range(2000)
    )

    assert set(rows) == {
        *("insert", "update", "update of a key", "delete", "delete and insert", "truncate")
    }
    assert set(structures) == {
        *("add column", "add column with default", "drop column", "rename column"),
        *("widen column", "set not null", "create index"),
        *("create partition", "attach partition", "detach and attach partition"),
    }


def test_a_generated_column_is_never_given_a_value() -> None:
    rng = random.Random(2)
    statements = [row_change(TABLE, rng).sql for _ in range(500)]

    assert any(NAME.quoted in statement for statement in statements)
    assert not any(NUMBERED.quoted in statement for statement in statements)


def test_a_table_that_others_refer_to_is_never_truncated() -> None:
    rng = random.Random(3)
    referred = Table(schema="s", name="t", columns=(ID,), key=("id",), referenced=True, rows=10)

    kinds = {row_change(referred, rng).kind for _ in range(2000)}

    assert "truncate" not in kinds


def test_only_changes_of_a_type_wait_for_the_connector() -> None:
    rng = random.Random(4)
    changes = [structure_change(DATABASE, rng, number) for number in range(500)]

    assert {change.statement.kind for change in changes if change.alone} == {"widen column"}
    assert all(change.alone for change in changes if " TYPE " in change.statement.sql)


def test_only_columns_of_its_own_are_dropped_and_renamed() -> None:
    rng = random.Random(5)
    changes = [structure_change(DATABASE, rng, number).statement for number in range(500)]
    lossy = [c.sql for c in changes if c.kind in {"drop column", "rename column"}]

    assert lossy
    assert all('COLUMN "soak_1"' in sql for sql in lossy)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (ID, ("bigint",)),
        (NAME, ("text", "varchar(15)")),
        (PRICE, ("numeric(8,2)", "numeric(9,3)")),
        (OURS, ("double precision",)),
        (Column(name="d", type="year", base="int4", domain=True), ()),
        (Column(name="a", type="integer[]", base="_int4", element="int4"), ()),
        (Column(name="n", type="numeric", base="numeric"), ()),
        (Column(name="j", type="jsonb", base="jsonb"), ()),
    ],
    ids=lambda value: value.type if isinstance(value, Column) else "",
)
def test_a_type_is_widened_only_where_every_value_stays(
    column: Column, expected: tuple[str, ...]
) -> None:
    assert wider(column) == expected


def test_a_value_of_a_numeric_has_no_more_digits_than_fit() -> None:
    rng = random.Random(6)
    for _ in range(200):
        made = new_value(PRICE, rng) or ""
        whole, _, fraction = made.split("'")[1].lstrip("-").partition(".")

        assert digits(PRICE) == (6, 2)
        assert len(fraction) == 2
        assert len(whole.lstrip("0")) <= 4


def test_an_unknown_type_has_no_value() -> None:
    assert new_value(Column(name="g", type="geometry", base="geometry"), random.Random(8)) is None


def test_names_and_texts_are_quoted() -> None:
    assert identifier('a"b') == '"a""b"'
    assert literal("it's") == "'it''s'"
    assert literal("a\\'b") == "E'a\\\\''b'"
