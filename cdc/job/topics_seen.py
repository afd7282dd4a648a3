"""The connector's topics as the broker has them now: how far they are, and which are not there."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    OffsetSpec,
)

from cdc.capture.bootstrap import written_by_itself
from cdc.kafka.topics import admin, unreachable
from cdc.tables import HEARTBEAT, SIGNAL

_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSeen:
    """``committed`` counts the offsets of all topics that land, as a reader of commits sees them.

    ``unended``: there is more in them, behind a transaction that is not at its end.
    """

    committed: int
    unended: bool
    missing: tuple[str, ...]


def topics_seen(bootstrap: str, prefix: str, landing: list[str]) -> TopicsSeen:
    """Raises UNREACHABLE."""
    client = _client(bootstrap)
    try:
        here = client.list_topics(timeout=_SECONDS).topics
        known = [topic for topic in landing if topic in here]
        committed = _ends(client, known, IsolationLevel.READ_COMMITTED)
        written = _ends(client, known, IsolationLevel.READ_UNCOMMITTED)
    except KafkaException as error:
        raise unreachable(bootstrap, str(error.args[0].str())) from None
    missing = tuple(topic for topic in written_to(prefix, landing) if topic not in here)
    return TopicsSeen(committed=committed, unended=written > committed, missing=missing)


def written_to(prefix: str, landing: list[str]) -> list[str]:
    """All that the connector can write to: what lands, and what nobody reads."""
    return [*landing, HEARTBEAT.topic(prefix), SIGNAL.topic(prefix), written_by_itself(prefix)]


@lru_cache(maxsize=1)
def _client(bootstrap: str) -> AdminClient:
    return admin(bootstrap)


def _ends(client: AdminClient, topics: list[str], level: IsolationLevel) -> int:
    if not topics:
        return 0
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(name, 0): latest for name in topics}
    answers = client.list_offsets(asked, isolation_level=level, request_timeout=_SECONDS)
    return sum(int(future.result().offset) for future in answers.values())
