"""Tests of a topic that has no leader at first; tests/source runs these calls on a real broker."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # not in its __all__

import cdc.kafka.offsets
from cdc.kafka.offsets import offsets_at

LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class Client:
    """A client that gives these answers one after the other, and then repeats the last one."""

    def __init__(self, *answers: int | KafkaException) -> None:
        self.answers = list(answers)
        self.requests = 0

    def list_offsets(self, wanted: dict[Any, Any], **_options: object) -> dict[Any, Future[Any]]:
        self.requests += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        future: Future[Any] = Future()
        if isinstance(answer, KafkaException):
            future.set_exception(answer)
        else:
            future.set_result(SimpleNamespace(offset=answer))
        return dict.fromkeys(wanted, future)


def error(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_offsets_of_a_topic_without_a_leader_are_requested_again(code: int) -> None:
    client = Client(error(code), error(code), 7)
    assert offsets_at(client, ["t"], LATEST) == {"t": 7}  # type: ignore[arg-type]
    assert client.requests == 3


def test_another_error_is_raised_at_once() -> None:
    client = Client(error(KafkaError.TOPIC_AUTHORIZATION_FAILED), 7)
    with pytest.raises(KafkaException):
        offsets_at(client, ["t"], LATEST)  # type: ignore[arg-type]
    assert client.requests == 1


def test_the_wait_for_a_leader_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdc.kafka.offsets, "SECONDS", 0.5)
    with pytest.raises(KafkaException):
        offsets_at(Client(error(KafkaError.LEADER_NOT_AVAILABLE)), ["t"], LATEST)  # type: ignore[arg-type]


def test_no_request_is_made_for_no_topics() -> None:
    client = Client(7)
    assert offsets_at(client, [], LATEST) == {}  # type: ignore[arg-type]
    assert client.requests == 0
