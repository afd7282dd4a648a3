"""The topics as the broker has them now, in a few requests for all of them."""

from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    OffsetSpec,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import offsets_at
from cdc.kafka.same_topic import Found, refuse_other
from cdc.kafka.topics import SECONDS, admin, unreachable

_PATIENCE_SECONDS: Final = 120
"""How long a landing that was read waits for a broker that went away meanwhile."""


def found(bootstrap: str, topics: Collection[str]) -> dict[str, Found]:
    """Those that exist, with their offsets. Raises UNREACHABLE."""
    try:
        return _with_offsets(admin(bootstrap), topics)
    except KafkaException as error:
        raise unreachable(bootstrap, str(error.args[0].str())) from None


class TopicWatch:
    """Asks before each landing whether it was read from the topics that are known."""

    def __init__(self, bootstrap: str, ids: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap
        self._ids = dict(ids)
        self._client = admin(bootstrap)

    def look(self) -> None:
        """To be called after the events were read: an id that is gone never comes back.

        Raises CHAIN_BROKEN for a topic that is another, or has more partitions; UNREACHABLE
        when no broker answers for two minutes.
        """
        attempts = Retrying(
            stop=stop_after_delay(_PATIENCE_SECONDS),
            wait=wait_fixed(0.5),
            retry=retry_if_exception(_is_unreachable),
            reraise=True,
        )
        here = attempts(self._described)
        for topic, known in self._ids.items():
            refuse_other(topic, known, here.get(topic))

    def _described(self) -> dict[str, Found]:
        try:
            return _described(self._client, self._ids)
        except KafkaException as error:
            raise unreachable(self._bootstrap, str(error.args[0].str())) from None


def _is_unreachable(error: BaseException) -> bool:
    return isinstance(error, CdcError) and error.kind is ErrorKind.UNREACHABLE


def _described(client: AdminClient, topics: Collection[str]) -> dict[str, Found]:
    if not topics:
        return {}
    asked = client.describe_topics(TopicCollection(list(topics)), request_timeout=SECONDS)
    here: dict[str, Found] = {}
    for name, future in asked.items():
        try:
            facts = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            here[name] = Found(id=str(facts.topic_id), partitions=len(facts.partitions))
    return here


def _with_offsets(client: AdminClient, topics: Collection[str]) -> dict[str, Found]:
    here = _described(client, topics)
    first = offsets_at(client, here, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    end = offsets_at(client, here, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return {
        name: Found(id=known.id, partitions=known.partitions, first=first[name], end=end[name])
        for name, known in here.items()
    }
