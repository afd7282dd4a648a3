"""A topic that is deleted between two looks counts as missing; the broker is not unreachable."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from cdc.kafka.offsets import end_offsets
from cdc.kafka.topic_watch import existing_topics

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
    assert existing_topics("broker:1", [TOPIC]) == {}


def test_its_end_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    monkeypatch.setattr("cdc.kafka.offsets.admin", lambda _: client)
    assert end_offsets("broker:1", [TOPIC]) == {}
