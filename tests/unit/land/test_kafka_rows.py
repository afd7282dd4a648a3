"""Records that this process reads become the rows that Spark's Kafka source has of them."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.land.arrow_rows import arrow_rows
from cdc.land.kafka_rows import kafka_rows, read_rows


def record(**given: Any) -> Any:  # noqa: ANN401 - a record as confluent-kafka has it
    told = {
        "topic": "t", "partition": 0, "offset": 7, "timestamp": (1, 1_700_000_000_123),
        "key": b"k", "value": b"v", "headers": None,
    } | given  # fmt: skip
    return SimpleNamespace(**{name: lambda value=value: value for name, value in told.items()})


def test_a_row_has_all_that_the_record_has() -> None:
    headers = [("h", b"1"), ("", None)]

    [row] = kafka_rows([record(headers=headers)]).to_pylist()

    assert row == {
        "topic": "t", "partition": 0, "offset": 7, "key": b"k", "value": b"v",
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
        "headers": [{"key": "h", "value": b"1"}, {"key": "", "value": None}],
    }  # fmt: skip


def test_what_a_record_does_not_have_is_null() -> None:
    [row] = kafka_rows([record(key=None, value=None, headers=[])]).to_pylist()

    assert (row["key"], row["value"], row["headers"]) == (None, None, None)


def test_the_rows_go_into_the_log_by_topic_and_offset() -> None:
    found = kafka_rows([record(offset=9), record(topic="a", offset=10), record()])

    rows = arrow_rows(found, 1, datetime(2026, 1, 1, tzinfo=UTC))

    assert [(row["topic"], row["offset"]) for row in rows.to_pylist()] == [
        ("a", 10), ("t", 7), ("t", 9),
    ]  # fmt: skip
    assert len(arrow_rows(kafka_rows([]), 1, datetime(2026, 1, 1, tzinfo=UTC))) == 0


class Unreadable:
    """A record whose header has a name that is not UTF-8."""

    def headers(self) -> list[tuple[str, bytes]]:
        return [(b"\xff".decode(), b"")]


@pytest.mark.parametrize("found", [None, "unreadable"])
def test_spark_reads_what_cannot_be_read_here(found: str | None) -> None:
    odd = record()
    odd.headers = Unreadable().headers
    reader: Any = SimpleNamespace(read=lambda *_: None if found is None else [odd])

    assert read_rows(reader, {"t": range(3)}) is None
