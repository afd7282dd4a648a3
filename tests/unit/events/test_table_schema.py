"""Tests of the columns in a writer's schema, and of how a change of them is classified."""

import json

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import (
    Additive,
    Column,
    Incompatible,
    TableSchema,
    Unchanged,
    belongs_to,
    diff,
    envelope_reader,
    key_fields,
    refused_columns,
    row_fields,
    table_schema_from_avro,
)
from cdc.tables import TableId, TableMode
from tests.events.recorded import recording, table_topic

TABLE = TableId("public", "t")
ID = Column("id", "int")


def schema(*columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(table=TABLE, columns=columns, key=key)


def test_columns_have_their_postgres_names() -> None:
    [text] = recording("tables").written(table_topic("odd")).values()

    found = table_schema_from_avro(text, table=TABLE, key=("A b",), mode=TableMode.KEYED)

    assert found.names == ("A b", "Ä-ö", "1a", "select")
    assert [field.name for field in row_fields(text)] == ["A_b", "___", "_1a", "select"]


def test_columns_that_cannot_be_kept_are_left_out_and_named() -> None:
    text = recording("types").written(table_topic("every_type"))[121]

    found = table_schema_from_avro(text, table=TABLE, key=("id",), mode=TableMode.KEYED)

    refused = dict(refused_columns(text))
    arrays = {"na", "n2a", "ba", "f8a", "f4a", "tsa", "tza", "tma", "i2a", "ea", "ina"}
    assert refused.keys() == {"tmtz", "vbt", "pt", "bx", *arrays}
    assert all(refused.values())
    assert not refused.keys() & set(found.names)


def test_a_hoisted_key_is_found_and_another_is_not() -> None:
    schemas = recording("tables").schemas

    path, fields = key_fields(schemas[122])

    assert (path, [field.name for field in fields]) == (("key",), ["id"])
    assert key_fields(schemas[3])[0] == ()


@pytest.mark.parametrize("text", ["", "[]", '{"type": "string"}', '{"fields": []}', "null"])
def test_another_schema_is_not_that_of_an_event(text: str) -> None:
    with pytest.raises(CdcError) as caught:
        row_fields(text)

    assert caught.value.kind is ErrorKind.BAD_EVENT
    assert envelope_reader(text) is None


@pytest.mark.parametrize("table", ["customers", "odd", "full_identity"])
def test_a_schema_belongs_to_its_topic_only(table: str) -> None:
    found = recording("tables")
    topic = table_topic(table)

    own = {number for number, text in found.schemas.items() if belongs_to(text, topic)}

    assert own == found.written(topic).keys()


def test_the_schema_for_an_event_s_place_has_no_row() -> None:
    text = recording("tables").schemas[123]

    found = json.loads(envelope_reader(text) or "")

    assert [field["name"] for field in found["fields"]] == ["source", "op", "transaction"]
    assert "balance" not in json.dumps(found)


def test_the_same_columns_change_nothing() -> None:
    old = schema(ID, Column("n", "bigint"))

    assert diff(old, schema(ID, Column("n", "int"))) == Unchanged()


def test_an_additional_column_is_added_and_a_missing_one_is_kept() -> None:
    more = Column("n", "string")

    assert diff(schema(ID), schema(ID, more)) == Additive((more,))
    assert diff(schema(ID, more), schema(ID)) == Unchanged()


@pytest.mark.parametrize(
    "new",
    [
        schema(Column("id", "bigint")),
        schema(Column("id", "string")),
        schema(ID, key=()),
    ],
)
def test_what_the_lake_cannot_hold_is_incompatible(new: TableSchema) -> None:
    assert isinstance(diff(schema(ID), new), Incompatible)
