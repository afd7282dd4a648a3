"""How far topics reach, as a reader of committed records sees it."""

from collections.abc import Iterable

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # not in its __all__

from cdc.kafka.topics import SECONDS, admin, unreachable


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
    asked = {TopicPartition(name, 0): latest for name in topics if name in have}
    if not asked:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    answers = client.list_offsets(asked, isolation_level=level, request_timeout=SECONDS)
    try:
        return {where.topic: future.result().offset for where, future in answers.items()}
    except KafkaException as error:
        raise unreachable(bootstrap, str(error.args[0].str())) from None
