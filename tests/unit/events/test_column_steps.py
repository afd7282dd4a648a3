"""Test the steps for columns that are added, dropped and renamed, and the values of added ones."""

from typing import Any

import pytest

from cdc.events.schema import Column
from cdc.events.structure.derive_steps import derive_steps
from cdc.events.structure.steps import AddColumn, DropColumn, RenameColumn, Step, WidenColumn
from tests.events.steps import ID, A, B, of, stop
from tests.events.structures import column, numeric, structure


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((A, B), ()),
        ((A,), (DropColumn("b"),)),
        ((A, column(3, "c")), (RenameColumn("b", "c"),)),
        ((A, B, column(4, "c", "text")), (AddColumn(Column("c", "string"), None),)),
        (
            (A, B, column(4, "c", "text", missing="x", default=True)),
            (AddColumn(Column("c", "string"), "x"),),
        ),
        ((A, column(3, "b", "int8")), (WidenColumn("b", "bigint"),)),
        ((A, column(3, "c", "int8")), (RenameColumn("b", "c"), WidenColumn("c", "bigint"))),
        ((A, column(4, "b", "text")), (DropColumn("b"), AddColumn(Column("b", "string"), None))),
        ((A, column(3, "b", not_null=True)), ()),
        ((A, column(3, "b", default=True)), ()),
        ((A, column(3, "b", "int2")), ()),  # narrower: old and new values fit the lake's type
        ((A, column(3, "b", "point")), (DropColumn("b"),)),
        ((A, B, column(4, "p", "point")), ()),
    ],
    ids=lambda value: " ".join(type(v).__name__ for v in value) or "nothing",
)
def test_a_change_of_columns(
    columns: tuple[dict[str, Any], ...], expected: tuple[Step, ...]
) -> None:
    assert of(*columns) == expected


def test_two_columns_that_swap_their_names() -> None:
    found = of(column(2, "b", "text"), column(3, "a"))

    assert found == (
        RenameColumn("a", "_cdc_aside_2"),
        RenameColumn("b", "a"),
        RenameColumn("_cdc_aside_2", "b"),
    )


def test_a_name_that_becomes_another_only_in_case_is_taken_by_way_of_a_third() -> None:
    assert of(column(2, "A", "text"), B) == (
        RenameColumn("a", "_cdc_aside_2"),
        RenameColumn("_cdc_aside_2", "A"),
    )


def test_the_name_of_a_dropped_column_is_free() -> None:
    assert of(column(2, "b", "text")) == (DropColumn("b"), RenameColumn("a", "b"))


def test_several_changes_in_one_statement() -> None:
    found = of(column(2, "name", "text"), column(4, "c", missing="5", default=True), rewrite=0)

    assert found == (
        DropColumn("b"),
        RenameColumn("a", "name"),
        AddColumn(Column("c", "int"), "5"),
    )


def test_a_default_that_was_made_for_each_row_stops() -> None:
    new = A, B, column(4, "c", "float8", default=True)

    assert "new column c" in stop(of(*new, rewrite=2))
    assert of(*new) == (AddColumn(Column("c", "double"), None),)  # set after the column was added
    assert of(A, B, column(4, "c", "float8"), rewrite=2) == (AddColumn(Column("c", "double")),)
    partitioned = structure(ID, A, B, kind="p")
    later = structure(ID, *new, kind="p")
    assert "new column c" in stop(derive_steps(partitioned, later))


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        ({"kind": "timestamptz"}, "2024-02-29 12:00:00+00", True),
        ({"kind": "timestamptz"}, "infinity", False),
        ({"kind": "timestamp"}, "10000-01-01 00:00:00", False),
        ({"kind": "date"}, "0044-03-15 BC", False),
        (numeric(8, 2), "-1.50", True),
        (numeric(8, 2), "NaN", False),
        ({"kind": "numeric"}, "NaN", True),
        ({"kind": "float8"}, "Infinity", True),
        ({"kind": "hstore"}, '"a"=>"1"', False),  # the connector sends JSON
        ({"kind": "money"}, "$1.00", False),
    ],
)
def test_a_value_on_older_rows_that_the_lake_cannot_hold_stops(
    kind: dict[str, Any], value: str, held: bool
) -> None:
    found = of(A, B, column(4, "c", **kind, missing=value))

    if held:
        assert [each.value for each in found if isinstance(each, AddColumn)] == [value]
    else:
        assert "that the lake's column cannot hold" in stop(found)


def test_a_constant_default_beside_a_conversion_stops() -> None:
    """The rewrite stores the default in every row, and the catalogue forgets it was one value."""
    new = A, column(3, "b", "int8"), column(4, "c", default=True)

    assert "new column c" in stop(of(*new, rewrite=4))


def test_a_column_that_begins_to_arrive_stops() -> None:
    old = structure(ID, column(2, "x", generated=True))

    assert "column x of shop.orders did not arrive" in stop(
        derive_steps(old, structure(ID, column(2, "x")))
    )
