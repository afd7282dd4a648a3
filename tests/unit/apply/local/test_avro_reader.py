"""The reader of Avro gives what an independent one does, and refuses what is no value."""

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.apply.local import avro_reader
from cdc.apply.local.avro_reader import NotAvroError, reader
from cdc.apply.local.not_local import NotLocalError
from cdc.events.avro import HEADER
from tests.events.recorded import recording

ITEM = {"type": "record", "name": "Item", "namespace": "n.s", "fields": [
    {"name": "i", "type": "int"}, {"name": "next", "type": ["null", "Item"]},
]}  # fmt: skip
EVERY: dict[str, Any] = {"type": "record", "name": "All", "fields": [
    {"name": "b", "type": "boolean"},
    {"name": "i", "type": ["null", "int"]},
    {"name": "l", "type": "long"},
    {"name": "f", "type": {"type": "float"}},
    {"name": "d", "type": "double"},
    {"name": "y", "type": "bytes"},
    {"name": "s", "type": ["string", "null", "boolean"]},
    {"name": "a", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "m", "type": {"type": "map", "values": "long"}},
    {"name": "r", "type": ITEM},
    {"name": "again", "type": "n.s.Item"},
]}  # fmt: skip
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
ITEMS = st.recursive(
    st.builds(lambda i: {"i": i, "next": None}, INTS),
    lambda inner: st.builds(lambda i, n: {"i": i, "next": n}, INTS, inner),
    max_leaves=3,
)
ROWS = st.fixed_dictionaries(
    {
        "b": st.booleans(),
        "i": st.none() | INTS,
        "l": LONGS,
        "f": st.floats(width=32),
        "d": st.floats(),
        "y": st.binary(),
        "s": st.none() | st.text() | st.booleans(),
        "a": st.lists(st.none() | st.text()),
        "m": st.dictionaries(st.text(), LONGS),
        "r": ITEMS,
        "again": ITEMS,
    }
)


def read(schema: Any, data: bytes) -> Any:  # noqa: ANN401 - Avro
    value, end = reader(json.dumps(schema), "strict")(data, 0)
    assert end == len(data)
    return value


@given(ROWS)
def test_what_was_written_is_read(row: dict[str, Any]) -> None:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(EVERY), row)

    in_order = {field["name"]: row[field["name"]] for field in EVERY["fields"]}
    assert repr(read(EVERY, written.getvalue())) == repr(in_order)


@pytest.mark.parametrize("name", ["tables", "types"])
def test_recorded_messages_are_read_as_by_another_reader(name: str) -> None:
    recorded = recording(name)
    frames = [data for m in recorded.messages for data in (m.key, m.value) if data is not None]

    assert frames
    for data in frames:
        schema = recorded.schemas[int.from_bytes(data[1:HEADER])]
        value, end = reader(schema, "strict")(data, HEADER)
        assert repr(value) == repr(recorded.decoded(data))
        assert end == len(data)


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        ("boolean", "02", False),
        ("int", "8080808000", 0),
        ("int", "ffffffff7f", -(2**31)),
        ("long", "80808080808080808000", 0),
        ("long", "ffffffffffffffffff7f", -(2**63)),
        (["null", "int"], "820002", 1),
        ({"type": "array", "items": "int"}, "0302 02 04 00", [1, 2]),
    ],
)
def test_bytes_that_no_writer_writes_have_the_value_of_javas_reader(
    schema: Any,  # noqa: ANN401 - Avro
    data: str,
    value: Any,  # noqa: ANN401 - of any type
) -> None:
    assert read(schema, bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("boolean", ""),
        ("int", "80"),
        ("int", "808080808000"),
        ("long", "8080808080808080808000"),
        ("float", "000000"),
        ("string", "01"),
        ("string", "0461"),
        ("bytes", "ffffffff0f61"),
        (["null", "int"], "0102"),
        (["null", "int"], "0402"),
        ({"type": "array", "items": "int"}, "0202"),
        ({"type": "array", "items": "int"}, "feffffff0f02"),
        ({"type": "array", "items": "int"}, "ffffffffffffffffff01"),
    ],
)
def test_bytes_that_are_no_value_are_refused(schema: Any, data: str) -> None:  # noqa: ANN401
    with pytest.raises((NotAvroError, IndexError)):
        read(schema, bytes.fromhex(data))


@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_a_value_that_no_message_has_room_for_is_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(avro_reader, "LONGEST", 3)
    monkeypatch.setattr(avro_reader, "MOST_ITEMS", 3)
    array = {"type": "array", "items": kind}

    assert len(read(kind, b"\x06abc")) == 3
    assert len(read(array, b"\x04\0\0\x02\0\0")) == 3
    for schema, data in ((kind, b"\x08abcd"), (array, b"\x04\0\0\x04\0\0\0")):
        with pytest.raises(NotAvroError):
            read(schema, data)


def test_texts_that_are_not_utf8_are_refused_or_keep_their_bytes() -> None:
    with pytest.raises(UnicodeDecodeError):
        reader('"string"', "strict")(b"\x04a\xff", 0)

    text, _ = reader('"string"', "surrogateescape")(b"\x04a\xff", 0)

    assert text.encode(errors="surrogateescape") == b"a\xff"


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "fixed", "name": "f", "size": 2}, "fixed"),
        ("n.Unknown", "n.Unknown"),
    ],
)
def test_types_that_the_connector_does_not_use_are_left_to_spark(
    schema: Any,  # noqa: ANN401 - Avro
    named: str,
) -> None:
    with pytest.raises(NotLocalError, match=named):
        reader(json.dumps(schema), "strict")
