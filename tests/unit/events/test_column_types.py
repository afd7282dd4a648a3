"""Test the steps for columns whose type changes."""

from typing import Any

import pytest

from cdc.events.structure.derive_steps import derive_course, derive_steps
from cdc.events.structure.steps import Note, WidenColumn
from tests.events.steps import ID, OLD, A, B, enum, of, stop
from tests.events.structures import column, numeric, structure, varchar


def test_an_expression_may_have_changed_anything() -> None:
    assert "converted by an expression" in stop(of(A, B, rewrite=4, converted=True))
    assert of(A, B, rewrite=4) == ()
    assert of(A, B, rewrite=2, converted=True) == ()


@pytest.mark.parametrize(
    ("before", "after", "type_"),
    [
        (column(2, "x", "int2"), column(2, "x", "int4"), "int"),
        (column(2, "x", "int4"), column(2, "x", "int8"), "bigint"),
        (column(2, "x", "int4"), column(2, "x", **numeric(12, 2)), "decimal(12,2)"),
        (column(2, "x", "int4"), column(2, "x", "numeric"), "string"),
        (column(2, "x", "int8"), column(2, "x", "text"), "string"),
        (column(2, "x", "int4"), column(2, "x", "float8"), "double"),
        (column(2, "x", "float4"), column(2, "x", "float8"), "double"),
        (column(2, "x", "bool"), column(2, "x", "text"), "string"),
        (column(2, "x", "date"), column(2, "x", "timestamp"), "timestamp_ntz"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(12, 2)), "decimal(12,2)"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(12, 4)), "decimal(12,4)"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(8, 2)), None),
        (column(2, "x", **numeric(10, 2)), column(2, "x", "numeric"), "string"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", "text"), "string"),
        (column(2, "x", **numeric(40, 2)), column(2, "x", **numeric(45, 2)), None),
        (column(2, "x", **varchar(5)), column(2, "x", **varchar(9)), None),
        (column(2, "x", **varchar(5)), column(2, "x", "text"), None),
        (column(2, "x", "text"), column(2, "x", "varchar"), None),
        (column(2, "x", "int4"), column(2, "x", **varchar(3)), "string"),
        (column(2, "x", "jsonb"), column(2, "x", "text"), None),
        (enum(2, "x"), column(2, "x", "text"), None),
        (column(2, "x", "int8"), column(2, "x", "int4"), None),
        (column(2, "x", "_int4"), column(2, "x", "_int8"), "array<bigint>"),
        (column(2, "x", "timestamp", modifier=3), column(2, "x", "timestamp"), None),
        (column(2, "x", "_int8"), column(2, "x", "_text"), "array<string>"),
        (column(2, "x", "int4"), column(2, "x", "int4") | {"kind": "d", "domain": "pos"}, None),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else str(value),
)
def test_a_type_that_holds_every_value(
    before: dict[str, Any], after: dict[str, Any], type_: str | None
) -> None:
    found = derive_steps(structure(ID, before), structure(ID, after), rewrite=4)

    assert found == (() if type_ is None else (WidenColumn("x", type_),))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (column(2, "x", "float8"), column(2, "x", "float4")),
        (column(2, "x", "int8"), column(2, "x", "float8")),
        (column(2, "x", "int4"), column(2, "x", **numeric(40, 2))),
        (column(2, "x", "int4"), column(2, "x", **numeric(4, -2))),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(10, 1))),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(40, 4))),
        (column(2, "x", **numeric(40, 2)), column(2, "x", **numeric(45, 4))),
        (column(2, "x", **numeric(40, 2)), column(2, "x", **numeric(30, 2))),
        (column(2, "x", "numeric"), column(2, "x", **numeric(10, 2))),
        (column(2, "x", **varchar(9)), column(2, "x", **varchar(5))),
        (column(2, "x", "text"), column(2, "x", **varchar(5))),
        (column(2, "x", "jsonb"), column(2, "x", **varchar(5))),
        (column(2, "x", "bpchar", modifier=9), column(2, "x", "bpchar", modifier=14)),
        (column(2, "x", "bpchar", modifier=9), column(2, "x", "text")),
        (column(2, "x", "timestamp"), column(2, "x", "timestamptz")),
        (column(2, "x", "timestamp"), column(2, "x", "timestamp", modifier=3)),
        (column(2, "x", "timestamp"), column(2, "x", "date")),
        (column(2, "x", "float8"), column(2, "x", "text")),
        (column(2, "x", "int4"), column(2, "x", "oid")),
        (column(2, "x", "cidr"), column(2, "x", "inet")),
        (column(2, "x", "text"), column(2, "x", "int4")),
        (column(2, "x", "int4"), column(2, "x", "_int4")),
    ],
    ids=lambda value: value["type"],
)
def test_a_type_under_which_a_value_may_be_another_stops(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    found = derive_steps(structure(ID, before), structure(ID, after), rewrite=4)

    assert "column x of shop.orders changed its type" in stop(found)


def test_a_renamed_value_of_an_enum_stops_and_an_added_one_does_not() -> None:
    old = structure(ID, enum(2, "m", _7="sad"))

    assert "enum of column m" in stop(derive_steps(old, structure(ID, enum(2, "m", _7="blue"))))
    assert derive_steps(old, structure(ID, enum(2, "m", _7="sad", _8="ok"))) == ()
    renamed = enum(2, "m", _7="sad") | {"type": "feeling"}
    assert derive_steps(old, structure(ID, renamed)) == ()
    # The user's own cast may turn one value into any other.
    another = enum(2, "m", _9="sad") | {"type": "feeling"}
    steps = derive_steps(old, structure(ID, another))
    assert "changed its type from mood to feeling" in stop(steps)


def test_a_composite_type_with_other_attributes_stops() -> None:
    pair = column(2, "p", "pair") | {"kind": "c"}
    old, new = pair | {"parts": "7:1:23:-1"}, pair | {"parts": "7:1:23:-1 7:2:23:-1"}

    assert "attributes of the type of column p of shop.orders changed" in stop(
        derive_steps(structure(ID, old), structure(ID, new))
    )
    assert derive_steps(structure(ID, old), structure(ID, old)) == ()


def test_a_narrower_type_leaves_the_lake_wider_and_the_next_change_knows() -> None:
    narrow = structure(ID, A, column(3, "b", "int2"))

    kept = derive_course(OLD, [Note(structure=narrow, rewrite=4)]).structure
    assert kept is not None
    assert kept.numbered()[3].lake == "int"
    assert derive_steps(kept, OLD, rewrite=4) == ()
    text = structure(ID, A, column(3, "b", "text"))
    assert derive_steps(kept, text, rewrite=4) == (WidenColumn("b", "string"),)
