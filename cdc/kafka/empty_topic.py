"""Delete the records of a topic but keep the topic, so that its offsets continue."""

from typing import Final

from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from cdc.errors import CdcError
from cdc.kafka.broker import Broker
from cdc.kafka.cleanup_policy import close, open_for_deleting, result
from cdc.kafka.clients import admin
from cdc.kafka.topics import SECONDS, topic_ids

_SETTLE_SECONDS: Final = 20


def empty_topic(broker: Broker, topic: str, *, before: int | None = None) -> bool:
    """Delete the records of a topic with one partition; return False if there is no such topic.

    ``before`` is the offset of the first record to keep; without it, none is kept. A compacted
    topic has other settings in the meantime (``cdc/kafka/cleanup_policy.py``): after a kill, the
    next call sets them back, or the next start that needs the topic. Raises UNREACHABLE.
    """
    if not topic_ids(broker, [topic]):
        return False
    client = admin(broker)
    opened = open_for_deleting(client, topic)
    try:
        _delete(client, topic, OFFSET_END if before is None else before)
    finally:
        if opened:
            close(client, topic)
    return True


def _delete(client: AdminClient, topic: str, offset: int) -> None:
    """Delete with retries, because the broker may not have noticed the new policy yet."""
    attempts = Retrying(
        stop=stop_after_delay(_SETTLE_SECONDS),
        wait=wait_fixed(0.3),
        retry=retry_if_exception_type(CdcError),
        reraise=True,
    )
    attempts(_delete_once, client, TopicPartition(topic, 0, offset))


def _delete_once(client: AdminClient, upto: TopicPartition) -> None:
    answers = client.delete_records([upto], request_timeout=SECONDS)
    for future in answers.values():
        result(future, f"emptying topic {upto.topic}")
