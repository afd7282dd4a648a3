"""Look at many topics as they are in the broker now, with a few requests."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    OffsetSpec,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin
from cdc.kafka.offsets import again_if_deleted, offsets_at
from cdc.kafka.same_topic import ExistingTopic, refuse_other
from cdc.kafka.topics import SECONDS, unreachable
from cdc.waiting import Every

_PATIENCE_SECONDS: Final = 120
"""How long a landing that has been read waits for a broker that is down."""
ALL_SECONDS: Final = 5.0
"""How often topics are checked from which nothing lands."""


def existing_topics(broker: Broker, topics: Collection[str]) -> dict[str, ExistingTopic]:
    """Return those of the topics that exist, with their offsets. Raises UNREACHABLE."""
    try:
        return again_if_deleted(partial(_with_offsets, admin(broker), topics))
    except KafkaException as error:
        raise unreachable(broker, error) from None


class TopicWatch:
    """Check before each landing that it was read from the topics of the known ids.

    The topics that it has events of are checked each time, the others now and then: what a landing
    costs does not depend on how many tables are followed.
    """

    def __init__(self, broker: Broker, ids: Mapping[str, str]) -> None:
        self._broker = broker
        self._ids = dict(ids)
        self._client = admin(broker)
        self._all = Every(ALL_SECONDS)

    def look(self, landing: Collection[str]) -> None:
        """Check the ids of these topics at least; those without a known id do not count.

        Call it after the events are read, as a lost id never comes back.

        Raises CHAIN_BROKEN if a topic was recreated or has several partitions, and UNREACHABLE if
        no broker answers for two minutes.
        """
        attempts = Retrying(
            stop=stop_after_delay(_PATIENCE_SECONDS),
            wait=wait_fixed(0.5),
            retry=retry_if_exception(_is_unreachable),
            reraise=True,
        )
        topics = self._ids.keys() if self._all.is_due() else self._ids.keys() & set(landing)
        existing = attempts(self._described, topics)
        for topic in sorted(topics):
            refuse_other(topic, self._ids[topic], existing.get(topic))

    def _described(self, topics: Collection[str]) -> dict[str, ExistingTopic]:
        try:
            return _described(self._client, topics)
        except KafkaException as error:
            raise unreachable(self._broker, error) from None


def _is_unreachable(error: BaseException) -> bool:
    return isinstance(error, CdcError) and error.kind is ErrorKind.UNREACHABLE


def _described(client: AdminClient, topics: Collection[str]) -> dict[str, ExistingTopic]:
    if not topics:
        return {}
    answers = client.describe_topics(TopicCollection(list(topics)), request_timeout=SECONDS)
    existing: dict[str, ExistingTopic] = {}
    for name, future in answers.items():
        try:
            facts = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            existing[name] = ExistingTopic(id=str(facts.topic_id), partitions=len(facts.partitions))
    return existing


def _with_offsets(client: AdminClient, topics: Collection[str]) -> dict[str, ExistingTopic]:
    existing = _described(client, topics)
    first = offsets_at(client, existing, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    end = offsets_at(client, existing, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return {
        name: replace(topic, first=first[name], end=end[name]) for name, topic in existing.items()
    }
