"""Read the offsets at which topics begin and end."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    OffsetSpec,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin
from cdc.kafka.topics import SECONDS, unreachable

_WITHOUT_LEADER: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""A broker's errors for a topic that it has created or taken over just now."""
_PAUSE_SECONDS: Final = 0.2
_Answer = TypeVar("_Answer")


def end_offsets(broker: Broker, topics: Iterable[str], *, committed: bool = True) -> dict[str, int]:
    """Return the offset after the last committed record of each topic that exists.

    Without ``committed``, it is the offset after the last record of any kind: a transaction over
    several topics may be visible in one of them before another. Raises UNREACHABLE.
    """
    client, names = admin(broker), list(topics)

    def request() -> dict[str, int]:
        all_topics = client.list_topics(timeout=SECONDS).topics
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        existing = [name for name in names if name in all_topics]
        return offsets_at(client, existing, latest, committed=committed)

    try:
        return again_if_deleted(request)
    except KafkaException as error:
        raise unreachable(broker, error) from None


def again_if_deleted(request: Callable[[], _Answer]) -> _Answer:
    """Call ``request``, and call it again if a topic was deleted between its two looks.

    Raises KafkaException.
    """
    return _again_after({KafkaError.UNKNOWN_TOPIC_OR_PART}, request)


def offsets_at(
    client: AdminClient, topics: Iterable[str], spec: OffsetSpec, *, committed: bool = True
) -> dict[str, int]:
    """Return the offset that ``spec`` names in each topic, waiting for their leaders.

    All topics must exist. Raises KafkaException.
    """
    wanted = {TopicPartition(name, 0): spec for name in topics}
    if not wanted:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

    def request() -> dict[str, int]:
        answers = client.list_offsets(wanted, isolation_level=level, request_timeout=SECONDS)
        return {place.topic: int(future.result().offset) for place, future in answers.items()}

    return _again_after(_WITHOUT_LEADER, request)


def _again_after(codes: Collection[int], request: Callable[[], _Answer]) -> _Answer:
    """Repeat the request for a while as long as the broker answers with one of these errors."""

    def is_passing(error: BaseException) -> bool:
        return isinstance(error, KafkaException) and error.args[0].code() in codes

    return Retrying(
        retry=retry_if_exception(is_passing),
        wait=wait_fixed(_PAUSE_SECONDS),
        stop=stop_after_delay(SECONDS),
        reraise=True,
    )(request)
