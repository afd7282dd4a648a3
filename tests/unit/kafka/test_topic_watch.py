"""A topic that is deleted between two looks counts as missing; the broker is not unreachable."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from cdc.errors import CdcError
from cdc.kafka import topic_watch
from cdc.kafka.broker import Broker
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topic_watch import TopicWatch, existing_topics

TOPIC = "t"


class Client:
    """A client of a broker whose only topic is deleted after it was named once."""

    def __init__(self) -> None:
        self.looks = 0

    def list_topics(self, **_options: object) -> SimpleNamespace:
        self.looks += 1
        return SimpleNamespace(topics=[TOPIC] if self.looks == 1 else [])

    def describe_topics(self, *_arguments: object, **_options: object) -> dict[str, Future[Any]]:
        self.looks += 1
        if self.looks > 1:
            return {TOPIC: failed()}
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(topic_id="id", partitions=[0]))
        return {TOPIC: future}

    def list_offsets(self, wanted: dict[Any, Any], **_options: object) -> dict[Any, Future[Any]]:
        return dict.fromkeys(wanted, failed())


def failed() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    return future


def test_its_description_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    monkeypatch.setattr("cdc.kafka.topic_watch.admin", lambda _: client)
    assert existing_topics(Broker("broker:1"), [TOPIC]) == {}


def test_its_end_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    monkeypatch.setattr("cdc.kafka.offsets.admin", lambda _: client)
    assert end_offsets(Broker("broker:1"), [TOPIC]) == {}


class FakeBroker:
    """A client of a broker with many topics; it counts those that it describes at each request."""

    def __init__(self, ids: dict[str, str]) -> None:
        self.ids = ids
        self.described: list[int] = []

    def describe_topics(self, wanted: Any, **_options: object) -> dict[str, Future[Any]]:  # noqa: ANN401 - a TopicCollection
        names = [name for name in wanted.names if name in self.ids]
        self.described.append(len(names))
        answers: dict[str, Future[Any]] = {name: Future() for name in names}
        for name, answer in answers.items():
            answer.set_result(SimpleNamespace(topic_id=self.ids[name], partitions=[0]))
        return answers


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    made = FakeBroker({f"t{number}": f"id of {number}" for number in range(300)})
    monkeypatch.setattr(topic_watch, "admin", lambda _: made)
    monkeypatch.setattr(
        topic_watch, "TopicCollection", lambda names: SimpleNamespace(names=list(names))
    )
    return made


def test_a_landing_asks_for_its_own_topics_only(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_watch, "ALL_SECONDS", 3600.0)
    watch = TopicWatch(Broker("broker:1"), dict(broker.ids))
    watch.look(["t7"])  # the first look is at all of them
    for _ in range(3):
        watch.look(["t7"])
    watch.look([])
    assert broker.described == [300, 1, 1, 1]
    broker.ids["t7"] = "another"
    with pytest.raises(CdcError, match="t7 is not the one"):
        watch.look(["t7", "unknown"])


def test_the_other_topics_are_looked_at_now_and_then(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_watch, "ALL_SECONDS", 0.0)
    watch = TopicWatch(Broker("broker:1"), dict(broker.ids))
    watch.look([])
    broker.ids["t8"] = "another"
    with pytest.raises(CdcError, match="t8 is not the one"):
        watch.look(["t7"])
