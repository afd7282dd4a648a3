"""Compare texts of key values with those Postgres wrote when the events were recorded."""

import re
from typing import Any

import pytest

from cdc.events.key_texts import key_text, readable
from cdc.events.schema import RowField, row_fields
from cdc.tables import TableId
from tests.events.recorded import PREFIX, recording

TABLES = [("types", "every_type"), ("tables", "customers"), ("tables", "orders")]
CERTAIN = {"int2", "int4", "int8", "oid", "bool", "numeric", "text", "varchar", "uuid", "bytea"}
CERTAIN |= {"date", "time", "timestamp", "timestamptz", "mood", "inet", "cidr", "macaddr"}
BEYOND = re.compile(r"infinity$| BC$|^\d{5,}-")  # the lake cannot hold these either


def recorded(name: str, table: str) -> list[tuple[RowField, Any, str]]:
    """Return (column, value, Postgres's text) for the values in each row's newest event."""
    found = recording(name)
    rows = {str(row["id"]): row for row in found.expected[table]}
    newest: dict[tuple[str, str], tuple[RowField, Any, str]] = {}
    for message in found.of(TableId("public", table).topic(PREFIX)):
        row = (found.decoded(message.value) or {}).get("after")
        if row is None or str(row["id"]) not in rows:
            continue
        for field in row_fields(found.schemas[int.from_bytes((message.value or b"")[1:5])]):
            text = rows[str(row["id"])].get(field.column.name)
            if row[field.name] is not None and text is not None:
                newest[str(row["id"]), field.name] = (field, row[field.name], text)
    return list(newest.values())


def alike(text: str, expected: str, kind: str) -> bool:
    """Return whether Postgres reads both texts as the same value of the type."""
    if kind in {"float4", "float8"}:
        return float(text) == pytest.approx(float(expected), rel=1e-7, nan_ok=True)
    if kind == "inet":
        expected = expected.removesuffix("/128")
    return text.rstrip() == expected if kind == "bpchar" else text == expected


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_a_text_is_postgres_s_own_or_absent(name: str, table: str) -> None:
    seen = set()
    for field, value, expected in recorded(name, table):
        kind = field.pg.name
        text = key_text(field, value, kind)
        if BEYOND.search(expected):
            continue
        assert text is None or alike(text, expected, kind), field.name
        assert text is not None or kind not in CERTAIN, field.name
        seen.add(kind)
    assert len(seen & CERTAIN) >= 3


def test_the_meaning_of_a_word_for_a_number_depends_on_the_type() -> None:
    [field] = [f for f in row_fields(schema("customers")) if f.name == "balance"]

    assert key_text(field, "NAN", "numeric") == "NaN"
    assert key_text(field, "NAN", "text") == "NAN"
    assert key_text(field, "NAN", None) is None
    assert key_text(field, "12.50", None) == "12.50"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("born", 2_932_897),  # 10000-01-01
        ("born", -719_163),
        ("born", 2_146_033_979),  # infinity
        ("created", 2**63 - 1),
        ("created", -(2**63)),
        ("seen", "+10000-01-01T00:00:00Z"),
        ("seen", "infinity"),
        ("tags", ["a"]),
        ("name", None),
    ],
)
def test_values_without_a_certain_text(column: str, value: Any) -> None:  # noqa: ANN401
    [field] = [f for f in row_fields(schema("customers")) if f.name == column]

    assert key_text(field, value, field.pg.name) is None


def test_integers_are_displayed_as_numbers() -> None:
    fields = {f.name: f for f in row_fields(schema("customers"))}

    assert readable(fields["id"], 7, "int8") == 7
    assert readable(fields["born"], 0, "date") == "1970-01-01"
    assert readable(fields["name"], "Ada", "text") == "Ada"
    assert readable(fields["born"], 2_932_897, "date") == "2932897"
    assert readable(fields["name"], None, "text") is None


def test_a_bit_is_no_boolean() -> None:
    [field] = [f for f in row_fields(schema("customers")) if f.name == "id"]

    value = True
    assert [key_text(field, value, k) for k in ("bool", "bit", None)] == ["true", "1", None]


def schema(table: str) -> str:
    topic = TableId("public", table).topic(PREFIX)
    return next(iter(recording("tables").written(topic).values()))
