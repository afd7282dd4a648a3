"""A recreated topic is filled even if the broker does not know of it at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cdc.capture import refill_topics
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.same_topic import ExistingTopic, ExpectedTopic
from cdc.kafka.topics import TopicSpec

TOPIC = "w.a.b"
MADE = ExistingTopic(id="new", partitions=1, first=0, end=0)


def test_a_topic_that_the_broker_lists_late_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that was skipped would begin at offset 0 again, where earlier events have been."""
    answers = iter([{}, {}, {}, {TOPIC: MADE}])
    filled: list[tuple[str, ExistingTopic, int]] = []

    def found(_bootstrap: str, _topics: object) -> Mapping[str, ExistingTopic]:
        return next(answers)

    def fill(_bootstrap: str, topic: str, now: ExistingTopic, last: int, _say: object) -> None:
        filled.append((topic, now, last))

    monkeypatch.setattr(refill_topics, "existing_topics", found)
    monkeypatch.setattr(refill_topics, "_fill", fill)
    monkeypatch.setattr(refill_topics, "delete_topics", lambda *_: None)
    monkeypatch.setattr(refill_topics, "ensure_topics", lambda *_, **__: None)

    known, spec = {TOPIC: ExpectedTopic(id="old", last=40)}, TopicSpec(TOPIC, {})
    assert refill_topics.refill_topics(Broker("broker"), known, [spec], replication=1) == [TOPIC]

    assert filled == [(TOPIC, MADE, 40)]


class FakeBroker:
    """A producer that accepts every record, and counts the calls."""

    def __init__(self, _settings: Mapping[str, object] = {}) -> None:
        self.requests: list[int] = []
        self.held = self.most = 0

    def produce(self, _topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        del key, value, partition
        self._take(1)

    def produce_batch(
        self, _topic: str, messages: Sequence[Mapping[str, Any]], *, partition: int
    ) -> int:
        assert partition == 0
        assert all(message["key"] is not None for message in messages)
        self._take(len(messages))
        return len(messages)

    def _take(self, count: int) -> None:
        self.requests.append(count)
        self.held += count
        self.most = max(self.most, self.held)

    def flush(self, _seconds: float) -> int:
        self.held = 0
        return 0


def test_a_gap_of_a_million_offsets_is_filled_by_few_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, emptied = FakeBroker(), []
    monkeypatch.setattr(refill_topics, "producer", lambda *_: broker)
    monkeypatch.setattr(
        refill_topics, "empty_topic", lambda _b, topic, before: emptied.append((topic, before))
    )
    now = ExistingTopic(id="new", partitions=1, first=0, end=7)
    said: list[str] = []

    refill_topics._fill(Broker("broker"), TOPIC, now, 1_250_006, said.append)

    assert sum(broker.requests) == 1_250_000
    assert len(broker.requests) == 13
    assert broker.most <= 100_000
    assert emptied == [(TOPIC, 1_250_007)]
    assert said == [f"filling topic {TOPIC}: offset 7 of 1,250,007"]


@pytest.mark.parametrize(
    "there", [None, MADE, ExistingTopic(id="new", partitions=3, first=0, end=10**12)]
)
def test_a_gap_that_would_take_hours_is_refused_before_anything_is_changed(
    monkeypatch: pytest.MonkeyPatch, there: ExistingTopic | None
) -> None:
    monkeypatch.setattr(
        refill_topics, "existing_topics", lambda *_: {TOPIC: there} if there else {}
    )
    for name in ("delete_topics", "ensure_topics", "_fill"):
        monkeypatch.setattr(
            refill_topics, name, lambda *_, **__: pytest.fail("something was changed")
        )
    spec = TopicSpec(TOPIC, {})
    far = {TOPIC: ExpectedTopic(id="old", last=refill_topics.MOST)}

    for attempt in (
        lambda: refill_topics.refill_topics(Broker("broker"), far, [spec], replication=1),
        lambda: refill_topics.refuse_far(Broker("broker"), far, [spec]),
    ):
        with pytest.raises(CdcError, match="ends 2,000,000,001 offsets short") as caught:
            attempt()
        assert caught.value.kind is ErrorKind.CHAIN_BROKEN
    near = {TOPIC: ExpectedTopic(id="old", last=refill_topics.MOST - 1)}
    refill_topics.refuse_far(Broker("broker"), near, [spec])
