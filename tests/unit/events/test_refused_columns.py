"""Test which columns stop a table: by their names, and by types that the connector cannot read."""

from typing import Any

import pytest

from cdc.events.structure.derive_steps import derive_course, derive_steps
from cdc.events.structure.steps import Note, Stop
from tests.events.steps import ID, OLD, A, B, of, stop
from tests.events.structures import column, structure


def test_a_new_column_that_may_crash_the_connector_stops() -> None:
    """The trigger unpublishes it, but the connector excludes only what it saw at its start."""
    array = column(4, "q", "_xid8")

    found = derive_steps(OLD, structure(ID, A, B, array))
    assert "new column q of shop.orders may crash the connector" in stop(found)
    assert derive_steps(structure(ID, array), structure(ID, array)) == ()
    assert of(A, B, column(4, "q", "_inet")) == ()
    assert of(A, B, column(4, "q", "_xid8", generated=True)) == ()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((A, column(4, "A", "text")), "shop.orders: columns a and A have one name"),
        ((column(2, "a-b"), column(4, "a b")), "columns a-b and a b have one name"),
        ((A, column(4, "_CDC_offset")), "names that begin with _cdc_ are reserved"),
        ((A, column(4, "_metadata")), "column _metadata: Spark and Delta have a column"),
        ((column(2, "_9"), column(4, "9")), "columns _9 and 9 have one name"),
        ((column(2, "__"), column(4, "😀")), "columns __ and 😀 have one name"),
    ],
)
def test_a_name_that_the_lake_cannot_have_stops(
    columns: tuple[dict[str, Any], ...], reason: str
) -> None:
    found = derive_steps(structure(ID, column(2, "a", "text")), structure(ID, *columns))

    assert any(isinstance(each, Stop) and reason in each.reason for each in found)
    assert all(isinstance(each, Stop) for each in found)


@pytest.mark.parametrize(
    "columns",
    [(A, column(4, "x", "bool", namesake="pg_catalog.bool")), ({**A, "namesake": "shop.int4"},)],
)
def test_a_column_whose_type_is_taken_for_another_stops(
    columns: tuple[dict[str, Any], ...],
) -> None:
    """The type is new with its column, or appears beside a column that was there before."""
    taken = columns[-1]
    (found,) = derive_steps(structure(ID, A), structure(ID, *columns))

    assert isinstance(found, Stop)
    assert f"column {taken['name']}" in found.reason
    assert f"takes its type {taken['type']} for {taken['namesake']}" in found.reason
    assert "rename" in found.remedy


def test_a_column_that_does_not_arrive_may_have_a_type_of_any_name() -> None:
    hidden = column(4, "x", "bool", namesake="pg_catalog.bool", generated=True)
    assert derive_steps(structure(ID, A), structure(ID, A, hidden)) == ()


@pytest.mark.timeout(20, method="thread")  # an endless course would use up all memory
@pytest.mark.parametrize("name", ["A", "ID", "b-1"])
def test_a_column_that_is_renamed_to_what_is_another_s_in_the_lake_stops(name: str) -> None:
    old = structure(ID, A, column(3, "b"), column(4, "b_1"))
    new = structure(ID, A, column(3, name), column(4, "b_1"))
    back = derive_course(old, [Note(structure=new), Note(structure=old)])

    assert "have one name" in stop(derive_steps(old, new))
    assert "have one name" in stop(back.steps)
