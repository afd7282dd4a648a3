"""Test the rows of the log in memory: their schema ids, their order, the landing they make."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.events.avro import frame
from cdc.land.arrow_rows import LOG_SCHEMA, arrow_landing, arrow_rows, schema_ids
from cdc.land.landing import TopicSpan

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SOURCE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        ("headers", HEADERS),
    ]
)


def framed(number: int, body: bytes = b"x") -> bytes:
    return bytes([0]) + number.to_bytes(4) + body


def events(*records: tuple[str, int, bytes | None]) -> pa.Table:
    rows = [
        {
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "value": value,
            "timestamp": NOW,
            "headers": [{"key": "h", "value": b"\x00"}],
        }
        for topic, offset, value in records
    ]
    return pa.Table.from_pylist(rows, schema=SOURCE)


@pytest.mark.parametrize(
    ("message", "number"),
    [
        (framed(7), 7),
        (framed(2**31 - 1), 2**31 - 1),
        (framed(2**31), None),
        (framed(7, b""), None),
        (b"\x01" + framed(7)[1:], None),
        (b"", None),
        (None, None),
    ],
)
def test_a_schema_id_is_that_of_a_frame(message: bytes | None, number: int | None) -> None:
    found = schema_ids(pa.chunked_array([[message]], pa.binary()))

    assert found.to_pylist() == [number]


@given(st.lists(st.none() | st.binary(max_size=8)))
def test_schema_ids_are_in_the_places_of_their_messages(messages: list[bytes | None]) -> None:
    def expected(message: bytes | None) -> int | None:
        found = frame(message) if message is not None and len(message) > 5 else None
        return found.schema_id if found is not None and found.schema_id < 2**31 else None

    found = schema_ids(pa.chunked_array([messages], pa.binary()))

    assert found.to_pylist() == list(map(expected, messages))


def test_rows_have_the_log_s_columns_and_are_ordered_by_topic_and_offset() -> None:
    rows = arrow_rows(
        pa.concat_tables([events(("b", 1, framed(3))), events(("a", 5, None), ("a", 4, b"?"))]),
        12,
        NOW,
    )

    assert rows.schema.equals(LOG_SCHEMA)
    places = [(row["topic"], row["offset"], row["value_schema_id"]) for row in rows.to_pylist()]
    assert places == [("a", 4, None), ("a", 5, None), ("b", 1, 3)]
    first: dict[str, Any] = rows.to_pylist()[0]
    assert first["landing"] == 12
    assert first["landed_at"] == first["timestamp"] == NOW
    assert first["headers"] == [{"key": "h", "value": b"\x00"}]


def test_a_landing_has_the_span_of_each_topic_and_the_rows() -> None:
    rows = arrow_rows(
        events(("a", 4, framed(1)), ("a", 9, framed(2)), ("a", 8, None), ("b", 0, None)), 3, NOW
    )

    landing = arrow_landing(rows)

    assert landing.number == 3
    assert landing.topics == {
        "a": TopicSpan(last=9, count=3, schema_ids=frozenset({1, 2})),
        "b": TopicSpan(last=0, count=1),
    }
    assert landing.events is rows
