"""Columns that changed their type between notes are found, and listed in the settings."""

import pytest

from cdc.capture.retyped import changed_types
from cdc.events.structure.structure import Structure
from cdc.source.connector.failure import is_at_an_event
from cdc.source.connector.settings import (
    COLUMNS,
    COLUMNS_PASSED_OVER,
    columns_passed_over,
    with_columns_passed_over,
)
from cdc.tables import ColumnId, TableId
from tests.events.structures import column, structure

T = TableId("shop", "t")


def noted(*columns: tuple[int, str, str], key: str = "id") -> Structure:
    return structure(
        column(1, "id", "int4"), *(column(*each) for each in columns), primary_key=[key]
    )


@pytest.mark.parametrize(
    ("notes", "names"),
    [
        ([noted((2, "v", "text")), noted((2, "v", "int4"))], {"v"}),
        ([noted((2, "v", "text")), noted((3, "v", "int4"))], {"v"}),  # another column
        ([noted((2, "v", "int4")), noted((2, "v", "int8"))], set()),  # every int4 fits
        ([noted((2, "v", "int4")), noted((2, "v", "timestamptz"))], {"v"}),
        ([noted((2, "v", "text")), noted((2, "w", "text"))], set()),
        ([noted((2, "v", "text")), noted((2, "v", "text"), (3, "w", "int4"))], set()),
        (  # they swap their names
            [
                noted((2, "v", "text"), (3, "w", "int4")),
                noted((3, "v", "int4"), (2, "w", "text")),
            ],
            {"v"},  # any int4 is valid text too
        ),
        (  # there and back
            [noted((2, "v", kind)) for kind in ("text", "int4", "text")],
            {"v"},
        ),
        ([noted((2, "v", "text"), key="v"), noted((2, "v", "int4"), key="v")], set()),
        ([noted((2, "v", "text"))], set()),
        ([], set()),
    ],
)
def test_columns_are_compared_by_name(notes: list[Structure], names: set[str]) -> None:
    assert {column.name for column in changed_types(notes)} == names


def test_excluded_columns_are_added_to_the_list_and_removed_again() -> None:
    before = {COLUMNS: "(?-i:shop[.]t[.]made)", "other": "1"}
    two = {ColumnId(T, "v"), ColumnId(TableId("shop", "u"), "odd-name")}
    told = with_columns_passed_over(before, two)
    assert told[COLUMNS].split(",")[0] == before[COLUMNS]
    assert columns_passed_over(told) == two
    one = with_columns_passed_over(told, {ColumnId(T, "v")})
    assert one[COLUMNS] == f"{before[COLUMNS]},(?-i:shop[.]t[.]v)"
    assert one[COLUMNS_PASSED_OVER] == "(?-i:shop[.]t[.]v)"
    assert with_columns_passed_over(one, ()) == before
    bare = with_columns_passed_over({"other": "1"}, two)
    assert with_columns_passed_over(bare, ()) == {"other": "1"}
    assert columns_passed_over(None) == frozenset()


def test_a_failure_at_an_event_differs_from_one_of_servers() -> None:
    assert is_at_an_event(
        "org.apache.kafka.connect.errors.ConnectException: An exception occurred\n\tat x\n"
        "Caused by: org.apache.kafka.connect.errors.ConnectException: Error while processing event "
        "at offset {lsn=1}\n\tat y\nCaused by: java.lang.NumberFormatException: For input string"
    )
    assert not is_at_an_event("org.postgresql.util.PSQLException: FATAL: too many connections")
