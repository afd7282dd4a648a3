"""While only heartbeats come, the landing thread waits; anything else ends the wait."""

import json
import threading
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.kafka.broker import Broker
from cdc.kafka.quiet_stream import QuietStream

MARKERS = "p.transaction"
BEFORE = {MARKERS: 10, "p.app.t": 4}
AFTER = {**BEFORE, MARKERS: 12}
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "marker",
        "fields": [
            {"name": "status", "type": "string"},
            {"name": "id", "type": "string"},
            {"name": "event_count", "type": ["null", "long"]},
            {
                "name": "data_collections",
                "type": [
                    "null",
                    {
                        "type": "array",
                        "items": {
                            "type": "record",
                            "name": "counted",
                            "fields": [
                                {"name": "data_collection", "type": "string"},
                                {"name": "event_count", "type": "long"},
                            ],
                        },
                    },
                ],
            },
            {"name": "ts_ms", "type": "long"},
        ],
    }
)


class FakeBroker:
    """The topic of markers and its only consumer; after the last record it ends the wait."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.records: Iterator[Any] = iter(records)
        self.ended = threading.Event()
        self.read = 0
        self.assigned: list[TopicPartition] = []

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned += places

    def unassign(self) -> None:
        self.assigned.clear()

    def poll(self, _seconds: float) -> Any:  # noqa: ANN401 - a message
        record = next(self.records, "the end")
        if record == "the end":
            self.ended.set()
            return None
        if isinstance(record, Exception):
            raise record
        self.read += 1
        assert [place.offset for place in self.assigned] == [11]
        return record


def message(value: bytes | None, error: object = None) -> SimpleNamespace:
    return SimpleNamespace(value=lambda: value, error=lambda: error)


def begin() -> SimpleNamespace:
    return marker("BEGIN", None)


def end(**counts: int) -> SimpleNamespace:
    return marker("END", {name.replace("__", "."): count for name, count in counts.items()})


def marker(status: str, counts: dict[str, int] | None) -> SimpleNamespace:
    found = counts or {}
    entries = [{"data_collection": k, "event_count": v} for k, v in found.items()]
    record = {
        "status": status,
        "id": "7:100",
        "event_count": sum(found.values()),
        "data_collections": entries,
        "ts_ms": 0,
    }
    return message(avro.encode(SCHEMA, 1, record))


HEARTBEAT = [begin(), end(wal2lake__heartbeat=1)]


def waited(
    monkeypatch: pytest.MonkeyPatch,
    records: Iterable[Any],
    after: dict[str, int] = AFTER,
    schemas: Any = lambda _ids: {1: SCHEMA},  # noqa: ANN401 - a look-up
) -> FakeBroker:
    broker = FakeBroker(records)
    monkeypatch.setattr("cdc.kafka.quiet_stream.reading_consumer", lambda *_a, **_k: broker)
    stream = QuietStream(Broker("broker:1"), prefix="p", markers=MARKERS, schemas_of=schemas)
    stream.wait(BEFORE, after, broker.ended, seconds=3600.0)
    assert broker.assigned == []
    return broker


def test_heartbeats_do_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = waited(monkeypatch, [*HEARTBEAT, None, *HEARTBEAT, None, None])
    assert broker.ended.is_set()


@pytest.mark.parametrize(
    "records",
    [
        [begin(), end(app__t=1)],
        [begin(), end(wal2lake__heartbeat=1, app__t=1)],
        [begin(), end(wal2lake__heartbeat=2)],  # a barrier
        [begin(), end(wal2lake__structure=1)],
        [begin(), None],  # a transaction whose end has not come yet
        [begin(), end()],
        [message(b"\x00\x00\x00\x00\x02x")],  # of an unknown schema
        [message(b"\x00\x00\x00\x00\x01x")],  # no record of its schema
        [message(None)],
        [message(None, error=object())],
        [KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))],
    ],
)
def test_anything_else_ends_it(monkeypatch: pytest.MonkeyPatch, records: list[Any]) -> None:
    broker = waited(monkeypatch, [*HEARTBEAT, *records])
    assert not broker.ended.is_set()


def test_it_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker([None] * 100)
    monkeypatch.setattr("cdc.kafka.quiet_stream.reading_consumer", lambda *_a, **_k: broker)
    stream = QuietStream(Broker("broker:1"), prefix="p", markers=MARKERS, schemas_of=lambda _: {})
    stream.wait(BEFORE, AFTER, broker.ended, seconds=0.0)
    assert not broker.ended.is_set()


def test_a_registry_that_does_not_answer_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_ids: Iterable[int]) -> dict[int, str]:
        raise CdcError(ErrorKind.UNREACHABLE, "no registry")

    assert not waited(monkeypatch, HEARTBEAT, schemas=silent).ended.is_set()


@pytest.mark.parametrize(
    "after", [BEFORE, {**BEFORE, "p.app.t": 5}, {**AFTER, "p.app.t": 5}, {**AFTER, "p.app.u": 0}]
)
def test_other_landings_do_not_begin_it(
    monkeypatch: pytest.MonkeyPatch, after: dict[str, int]
) -> None:
    broker = waited(monkeypatch, HEARTBEAT, after=after)
    assert not broker.ended.is_set()
    assert broker.read == 0
