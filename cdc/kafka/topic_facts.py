"""Read which offsets a topic still has, and what Kafka may remove from it."""

from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin
from cdc.kafka.offsets import offsets_at
from cdc.kafka.topics import SECONDS, unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """Gives a topic's settings, and the offsets of committed records in its only partition."""

    topic: str
    first: int  # the earliest offset
    end: int  # the offset after the last committed record
    policy: str  # cleanup.policy
    min_compaction_lag_ms: int
    delete_retention_ms: int

    @property
    def compacted(self) -> bool:
        """Return whether Kafka compacts the topic."""
        return "compact" in self.policy


def topic_facts(broker: Broker, topic: str) -> TopicFacts:
    """Return the facts of a topic.

    Raises UNREACHABLE if no broker answers, and CHAIN_BROKEN if there is no such topic.
    """
    client = admin(broker)
    try:
        if topic not in client.list_topics(timeout=SECONDS).topics:
            raise CdcError(
                ErrorKind.CHAIN_BROKEN,
                f"the broker at {broker} has no topic {topic}",
                remedy="correct kafka.bootstrap_servers or name, or restore the topic",
            )
        settings = _settings(client, topic)
        earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return TopicFacts(
            topic=topic,
            first=offsets_at(client, [topic], earliest)[topic],
            end=offsets_at(client, [topic], latest)[topic],
            policy=settings["cleanup.policy"],
            min_compaction_lag_ms=int(settings["min.compaction.lag.ms"]),
            delete_retention_ms=int(settings["delete.retention.ms"]),
        )
    except KafkaException as error:
        raise unreachable(broker, error) from None


def _settings(client: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    answers: dict[Any, Any] = client.describe_configs([resource], request_timeout=SECONDS)
    return {name: str(entry.value) for name, entry in answers[resource].result().items()}
