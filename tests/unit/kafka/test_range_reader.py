"""A range is whole when its last offset has come, or the topic's end lies behind it."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from cdc.kafka.broker import Broker
from cdc.kafka.range_reader import RangeReader

END = KafkaError._PARTITION_EOF
MOST = 1000
READ = {"a": range(5, 8), "b": range(2), "c": range(4, 4)}


def record(topic: str, offset: int, value: bytes | None = b"v") -> Any:  # noqa: ANN401 - as the client has it
    return message(topic, offset, value, None)


def end(topic: str, offset: int) -> Any:  # noqa: ANN401 - as the client has it
    return message(topic, offset, b"the end", KafkaError(END))


def message(topic: str, offset: int, value: bytes | None, error: KafkaError | None) -> Any:  # noqa: ANN401
    told = {"topic": topic, "offset": offset, "key": None, "value": value, "error": error}
    return SimpleNamespace(**{name: lambda told=told: told for name, told in told.items()})


class FakeBroker:
    """The only consumer; it gives messages in turns, the first of which is polled for."""

    def __init__(self, *turns: Iterable[Any]) -> None:
        self.turns = [list(turn) for turn in turns]
        self.assigned: dict[str, int] = {}
        self.closed = False

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned = {place.topic: place.offset for place in places}

    def unassign(self) -> None:
        self.assigned = {}

    def poll(self, seconds: float) -> Any:  # noqa: ANN401 - a message, or None
        assert seconds > 0
        assert self.assigned == {"a": 5, "b": 0}
        return self.turns[0].pop(0) if self.turns else None

    def consume(self, _most: int, seconds: float) -> list[Any]:
        assert seconds == 0
        return self.turns.pop(0)

    def close(self) -> None:
        self.closed = True


def read(monkeypatch: pytest.MonkeyPatch, broker: FakeBroker) -> list[tuple[str, int]] | None:
    monkeypatch.setattr("cdc.kafka.range_reader.reading_consumer", lambda *_, **__: broker)
    found = RangeReader(Broker("kafka:9092"), group="g").read(READ, MOST)
    assert broker.assigned == {}
    return None if found is None else [(str(one.topic()), int(one.offset() or 0)) for one in found]


def test_all_records_of_the_ranges_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker([record("a", 5)], [record("b", 0), record("b", 1)], [record("a", 7)])

    assert read(monkeypatch, broker) == [("a", 5), ("b", 0), ("b", 1), ("a", 7)]
    assert broker.turns == []


def test_markers_of_transactions_end_a_range_too(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker([record("a", 5), record("b", 0)], [end("b", 2)], [end("a", 8)])

    assert read(monkeypatch, broker) == [("a", 5), ("b", 0)]
    assert broker.turns == []


def test_what_came_after_the_ranges_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker([record("a", 5), record("a", 9), record("b", 0), record("b", 3)])

    assert read(monkeypatch, broker) == [("a", 5), ("b", 0)]


def test_an_end_inside_a_range_is_not_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker([record("a", 7), record("b", 0), end("b", 1)], [record("b", 1)])

    assert read(monkeypatch, broker) == [("a", 7), ("b", 0), ("b", 1)]


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param([], id="silence"),
        pytest.param([[record("a", 7)]], id="silence after some of it"),
        pytest.param(
            [[record("a", 7), message("b", 0, b"", KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))]],
            id="an error",
        ),
        pytest.param([[record("a", 7, b"x" * (MOST + 1))], [record("b", 1)]], id="large records"),
    ],
)
def test_spark_reads_what_is_not_whole_or_large(
    monkeypatch: pytest.MonkeyPatch, turns: list[list[Any]]
) -> None:
    assert read(monkeypatch, FakeBroker(*turns)) is None


def test_a_client_that_cannot_be_made_leaves_it_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> FakeBroker:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "no address"))

    monkeypatch.setattr("cdc.kafka.range_reader.reading_consumer", refused)

    assert RangeReader(Broker("kafka:9092"), group="g").read(READ, MOST) is None


def test_nothing_is_asked_for_where_nothing_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc.kafka.range_reader.reading_consumer", None)

    assert RangeReader(Broker("kafka:9092"), group="g").read({"a": range(5, 5)}, MOST) == []


def test_the_consumer_is_kept_and_given_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [record("a", 7), record("b", 1)]
    broker, made = FakeBroker(whole, whole), list[FakeBroker]()

    def make(*_: object, **__: object) -> FakeBroker:
        made.append(broker)
        return broker

    monkeypatch.setattr("cdc.kafka.range_reader.reading_consumer", make)
    reader = RangeReader(Broker("kafka:9092"), group="g")

    assert [len(reader.read(READ, MOST) or []) for _ in range(2)] == [2, 2]
    reader.close()

    assert (len(made), broker.closed) == (1, True)
