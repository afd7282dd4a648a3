"""Test structures with masked columns: what a change of one means, and what is recorded."""

import hashlib
from typing import Any, Final

import pytest

from cdc.config.masks import Masks
from cdc.events.schema import Column, TableSchema
from cdc.events.structure.derive_steps import derive_steps
from cdc.events.structure.masked import masked, masked_otherwise
from cdc.events.structure.steps import AddColumn, RenameColumn, Step
from cdc.events.structure.structure import Structure, parse
from cdc.tables import TableId, TableMode
from tests.events.steps import ID, A, B, stop
from tests.events.structures import column, structure

SALT: Final = "0123456789abcdef"
MASKS: Final = Masks(
    (
        ("shop.orders.a*", "hash 0a1b"),
        ("shop.orders.cut*", "truncate 2"),
        ("shop.orders.gone", "drop"),
    ),
    SALT,
)

SCHEMA: Final = TableSchema(
    table=TableId("shop", "orders"),
    columns=(Column("id", "bigint"), Column("a", "string"), Column("b", "int")),
    key=("id",),
    mode=TableMode.KEYED,
)


def of(*columns: dict[str, Any], masks: Masks = MASKS, **more: Any) -> Structure:  # noqa: ANN401
    return masked(structure(ID, *columns, **more), masks)


def steps(new: Structure, *old: dict[str, Any]) -> tuple[Step, ...]:
    return derive_steps(of(*(old or (A, B))), new)


def test_a_dropped_column_does_not_arrive() -> None:
    found = of(A, column(4, "gone", "text"))

    assert [(c.name, c.mask, c.followed) for c in found.columns] == [
        ("id", "", True),
        ("a", "hash 0a1b", True),
        ("gone", "drop", False),
    ]
    assert parse(found.to_text()) == found


def test_a_renamed_column_that_no_pattern_matches_stops_its_table() -> None:
    said = stop(steps(of(column(2, "plain", "text"), B)))

    assert said == (
        "column plain, which was called a, of shop.orders is masked otherwise by source.columns:"
        " not at all instead of hash 0a1b"
    )


def test_a_renamed_column_that_is_masked_alike_is_followed() -> None:
    assert steps(of(column(2, "also", "text"), B)) == (RenameColumn("a", "also"),)


def test_a_plain_column_with_a_masked_name_stops_its_table() -> None:
    assert "masked otherwise" in stop(steps(of(A, column(3, "cut"))))


def test_a_dropped_column_that_gets_another_name_stops_its_table() -> None:
    gone = column(4, "gone", "text")

    stops = steps(of(A, column(4, "back", "text")), A, gone)
    assert "back, which was called gone, of" in getattr(stops[0], "reason", "")


def test_rows_older_than_a_masked_column_show_what_is_left_of_its_default() -> None:
    added = (
        column(5, "a new", "text", missing="x", default=True),
        column(6, "cut", "text", missing="xyz", default=True),
        column(7, "gone", "text", missing="x", default=True),
    )

    assert steps(of(A, B, *added)) == (
        AddColumn(Column("a new", "string"), hashlib.sha256(f"{SALT}x".encode()).hexdigest()),
        AddColumn(Column("cut", "string"), "xy"),
    )


@pytest.mark.parametrize("kind", ["int4", "_text", "uuid"])
def test_a_new_column_of_another_type_than_a_text_stops_its_table(kind: str) -> None:
    assert "which source.columns cannot truncate" in stop(steps(of(A, B, column(5, "cut", kind))))


def test_a_masked_column_that_becomes_part_of_the_key_stops_its_table() -> None:
    new = of(A, B, primary_key=["id", "a"])

    reasons = [getattr(step, "reason", "") for step in steps(new)]
    assert "column a of the key of shop.orders is masked by source.columns" in reasons


@pytest.mark.parametrize(
    ("columns", "differs"),
    [
        ({"shop.orders.a*": "hash 0a1b"}, False),
        ({"shop.orders.a*": "hash ffff"}, True),
        ({"shop.orders.a*": "truncate 3"}, True),
        ({}, True),
        ({"shop.orders.*": "hash 0a1b"}, True),
    ],
)
def test_a_table_with_rows_keeps_its_masks(columns: dict[str, str], differs: bool) -> None:
    now = Masks(tuple(columns.items()))
    found = masked_otherwise(SCHEMA, of(A, B), now)

    assert (found is not None) == differs
    assert found is None or "source.columns has changed for column" in found


def test_a_table_of_unknown_structure_cannot_begin_to_be_masked() -> None:
    assert masked_otherwise(SCHEMA, None, Masks()) is None
    assert "for column a" in (masked_otherwise(SCHEMA, None, MASKS) or "")
