"""Tests of a table's structure: its text, its key, and how its events become rows."""

import json

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column
from cdc.events.structure.structure import parse
from cdc.events.values.lake_types import PgType
from cdc.tables import TableId, TableMode
from tests.events.structures import column, note, numeric, structure, varchar


def test_a_note_is_read() -> None:
    found = structure(
        column(1, "id", not_null=True),
        column(3, "price", **numeric(10, 2), missing="1.50", default=True),
        column(4, "place", "point"),
        column(5, "sum", generated=True),
        column(6, "Näme", **varchar(9)),
    )

    assert found.table == TableId("shop", "orders")
    assert [c.column for c in found.followed] == [
        Column("id", "int"),
        Column("price", "decimal(10,2)"),
        Column("Näme", "string"),
    ]
    price = found.numbered()[3]
    assert (price.pg, price.missing, price.has_default) == (PgType("numeric", 10, 2), "1.50", True)
    assert [c.arrives for c in found.columns] == [True, True, False, False, True]


def test_what_is_kept_beside_the_table_is_read_again() -> None:
    text = note(
        column(1, "id"),
        column(2, "mood", "mood", labels={"7": "sad", "9": "ok"}) | {"kind": "e"},
        column(3, "tags", "_text", missing="{}"),
    )

    found = parse(text)

    assert found.columns[1].labels == ((7, "sad"), (9, "ok"))
    assert parse(found.to_text()) == found
    assert parse(found.to_text()).to_text() == found.to_text()
    assert json.loads(found.to_text())["columns"][1]["labels"] == {"7": "sad", "9": "ok"}


def test_what_the_lake_has_outlives_another_mapping_of_types() -> None:
    """A later version may map the type differently; the lake's table keeps the type it has."""
    kept = json.loads(structure(column(1, "id"), column(2, "n", "int4")).to_text())
    kept["columns"][1] |= {"lake": "bigint", "left_out": True}

    found = parse(json.dumps(kept)).columns[1]

    assert (found.lake, found.arrives, found.followed) == ("bigint", True, False)


@pytest.mark.parametrize(
    ("more", "append", "mode"),
    [
        ({}, False, TableMode.KEYED),
        ({"identity": "f"}, False, TableMode.KEYED),
        ({"primary_key": [], "identity": "i", "identity_index": ["a"]}, False, TableMode.KEYED),
        ({"identity": "i", "identity_index": ["id", "a"]}, False, TableMode.KEYED),
        ({"primary_key": [], "identity": "f"}, False, TableMode.MULTISET),
        ({"primary_key": [], "identity": "f"}, True, TableMode.APPEND),
        ({"primary_key": []}, True, TableMode.APPEND),
        ({"primary_key": []}, False, "has neither a primary key"),
        ({"identity": "n"}, False, "REPLICA IDENTITY NOTHING"),
        ({"identity": "i", "identity_index": ["a"]}, False, "without the columns of its primary"),
        ({"identity": "i"}, False, "without the columns of its primary"),
    ],
)
def test_how_events_become_rows(
    more: dict[str, object], append: bool, mode: TableMode | str
) -> None:
    found = structure(column(1, "id"), column(2, "a"), **more).mode(append=append)

    if isinstance(mode, str):
        assert isinstance(found, str)
        assert mode in found
    else:
        assert found is mode


def test_the_key_is_the_primary_key_or_the_identity_index() -> None:
    columns = column(1, "id"), column(2, "a")
    index = {"identity": "i", "identity_index": ["a"]}

    assert structure(*columns).key == ("id",)
    assert structure(*columns, **index, primary_key=[]).key == ("a",)
    assert structure(*columns, identity_index=["a"], primary_key=[]).key == ()
    assert structure(*columns, **index, primary_key=[]).key_numbers() == {2}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", note(column(1, "id"))[:-9], '{"oid": "x"}']
)
def test_what_is_no_structure_is_refused(text: str) -> None:
    with pytest.raises(CdcError) as caught:
        parse(text)

    assert caught.value.kind is ErrorKind.BAD_EVENT
    assert caught.value.remedy


def test_a_table_that_the_source_could_not_describe_is_named() -> None:
    with pytest.raises(CdcError, match="could not describe the structure of table 77") as caught:
        parse('{"oid": 77, "failed": "42P01"}')

    assert caught.value.detail == "SQLSTATE 42P01"
