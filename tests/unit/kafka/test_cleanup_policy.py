"""A topic that is closed is described as closed: the broker may lag behind its own answer."""

from concurrent.futures import Future
from typing import Any
from unittest.mock import create_autospec

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    ConfigEntry,
    ConfigSource,
)

from cdc.kafka.broker import Broker
from cdc.kafka.topics import TopicSpec, ensure_topics

TOPIC = "t"
OPENED = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
CLOSED = {"cleanup.policy": "compact"}


def answered(value: object) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def described(settings: dict[str, str]) -> dict[str, ConfigEntry]:
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {name: ConfigEntry(name, value, source=own) for name, value in settings.items()}


@pytest.mark.parametrize("stale", [0, 1, 3])
def test_a_start_closes_a_topic_though_the_broker_shows_it_open_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, stale: int
) -> None:
    shown = [OPENED] + [OPENED] * stale + [CLOSED] * 2
    client = create_autospec(AdminClient, instance=True)
    client.list_topics.return_value.topics = {TOPIC: type("Topic", (), {"partitions": [0]})}
    client.describe_configs.side_effect = lambda resources, **_: {
        resources[0]: answered(described(shown.pop(0)))
    }
    client.incremental_alter_configs.side_effect = lambda resources, **_: {
        resources[0]: answered(None)
    }
    monkeypatch.setattr("cdc.kafka.topics.admin", lambda _: client)

    ensure_topics(Broker("broker:1"), [TopicSpec(TOPIC, {"cleanup.policy": "compact"})])
    assert client.incremental_alter_configs.call_count == 1
