"""How far topics reach, as a reader of committed records sees it."""

from collections.abc import Iterable
from typing import Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    OffsetSpec,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from cdc.kafka.topics import SECONDS, admin, unreachable

_WITHOUT_LEADER: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""What a broker says of a topic that it has made, or has taken over, a moment ago."""
_PAUSE_SECONDS: Final = 0.2


def end_offsets(bootstrap: str, topics: Iterable[str], *, committed: bool = True) -> dict[str, int]:
    """The offset after the last committed record, of each of the topics that exists.

    After the last record at all without ``committed``: of a transaction over several topics one
    may show its records before another does. Raises UNREACHABLE when no broker answers.
    """
    client = admin(bootstrap)
    try:
        have = client.list_topics(timeout=SECONDS).topics
    except KafkaException as error:
        raise unreachable(bootstrap, str(error.args[0].str())) from None
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    known = [name for name in topics if name in have]
    try:
        return offsets_at(client, known, latest, committed=committed)
    except KafkaException as error:
        raise unreachable(bootstrap, str(error.args[0].str())) from None


def offsets_at(
    client: AdminClient, topics: Iterable[str], spec: OffsetSpec, *, committed: bool = True
) -> dict[str, int]:
    """The offset at a place of each topic, all of which exist; waits for their leaders.

    Raises KafkaException.
    """
    asked = {TopicPartition(name, 0): spec for name in topics}
    if not asked:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

    def answered() -> dict[str, int]:
        answers = client.list_offsets(asked, isolation_level=level, request_timeout=SECONDS)
        return {where.topic: int(future.result().offset) for where, future in answers.items()}

    return Retrying(
        retry=retry_if_exception(_is_without_leader),
        wait=wait_fixed(_PAUSE_SECONDS),
        stop=stop_after_delay(SECONDS),
        reraise=True,
    )(answered)


def _is_without_leader(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _WITHOUT_LEADER
