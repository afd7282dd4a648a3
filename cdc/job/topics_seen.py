"""Reads where the connector's topics end now, and which of them are missing."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    OffsetSpec,
)

from cdc.capture.topic_specs import debezium_heartbeat_topic
from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin
from cdc.kafka.topics import unreachable
from cdc.tables import HEARTBEAT

_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSeen:
    """``committed`` is the sum of the end offsets of the topics that land, as READ_COMMITTED sees.

    ``unended``: they hold more, which an open Kafka transaction hides. ``missing`` names topics
    that the connector writes to and the broker does not have.
    """

    committed: int
    unended: bool
    missing: tuple[str, ...]


def topics_seen(broker: Broker, prefix: str, landing: list[str]) -> TopicsSeen:
    """Ask the broker about the topics; raise UNREACHABLE where it does not answer."""
    client = _client(broker)
    try:
        existing = client.list_topics(timeout=_SECONDS).topics
        landed = [topic for topic in landing if topic in existing]
        committed = _ends(client, landed, IsolationLevel.READ_COMMITTED)
        written = _ends(client, landed, IsolationLevel.READ_UNCOMMITTED)
    except KafkaException as error:
        raise unreachable(broker, error) from None
    missing = tuple(topic for topic in connector_topics(prefix, landing) if topic not in existing)
    return TopicsSeen(committed=committed, unended=written > committed, missing=missing)


def connector_topics(prefix: str, landing: list[str]) -> list[str]:
    """Return all topics that the connector can write to, also those that nobody reads."""
    return [*landing, HEARTBEAT.topic(prefix), debezium_heartbeat_topic(prefix)]


@lru_cache(maxsize=1)
def _client(broker: Broker) -> AdminClient:
    return admin(broker)


def _ends(client: AdminClient, topics: list[str], level: IsolationLevel) -> int:
    if not topics:
        return 0
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    partitions = {TopicPartition(name, 0): latest for name in topics}
    ends = client.list_offsets(partitions, isolation_level=level, request_timeout=_SECONDS)
    return sum(int(end.result().offset) for end in ends.values())
