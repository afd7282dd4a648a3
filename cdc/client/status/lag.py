"""Count the offsets of a topic that are not applied yet.

Records that end a Kafka transaction take an offset too, so a topic has one more offset even when
every change is applied. If there are offsets left, we therefore look for a change among them.
"""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc.kafka.broker import Broker
from cdc.kafka.clients import reading_consumer
from cdc.kafka.topics import unreachable

SECONDS = 5.0


def lags(broker: Broker, applied: Mapping[str, int]) -> dict[str, int]:
    """Return by topic how many offsets come after ``applied``; 0 if no change is among them.

    Raises UNREACHABLE when no broker answers in time.
    """
    consumer = reading_consumer(
        broker,
        "wal2lake-status",
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        fetch_message_max_bytes=65_536,
    )
    try:
        ends = {topic: _end(consumer, topic) for topic in applied}
        gaps = {topic: applied[topic] + 1 for topic in applied if ends[topic] > applied[topic] + 1}
        firsts = _first_changes(consumer, gaps)
    except KafkaException as error:
        raise unreachable(broker, error, start="wal2lake up") from None
    finally:
        consumer.close()
    return {topic: ends[topic] - firsts[topic] if topic in firsts else 0 for topic in applied}


def _end(consumer: Consumer, topic: str) -> int:
    marks = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)
    return int(marks[1]) if marks else 0


def _first_changes(consumer: Consumer, starts: Mapping[str, int]) -> dict[str, int]:
    """Return by topic the offset of the first record from the start on; omit topics without one."""
    if not starts:
        return {}
    consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in starts.items()])
    waiting, firsts = set(starts), dict[str, int]()
    deadline = time.monotonic() + SECONDS
    while waiting:
        message = consumer.poll(max(0.0, deadline - time.monotonic()))
        if message is None:
            # Without an answer in time we assume a change: too small a lag would mislead.
            return firsts | {topic: starts[topic] for topic in waiting}
        topic = str(message.topic())
        if topic in waiting and not _ended(message):
            firsts[topic] = int(message.offset() or 0)
        if topic in waiting:
            waiting.remove(topic)
            consumer.pause([TopicPartition(topic, 0)])
    return firsts


def _ended(message: Message) -> bool:
    """Return whether this is the end of the partition, not a record; raise any other error."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
        raise KafkaException(error)
    return error is not None
