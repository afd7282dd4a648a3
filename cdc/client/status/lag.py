"""How many offsets of a topic are not applied yet.

Kafka counts the records that end a transaction among the offsets, so a topic whose every change
is applied still has one more offset. Where there is a gap we therefore look for a change in it.
"""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc.errors import CdcError, ErrorKind

SECONDS = 5.0


def lags(bootstrap: str, applied: Mapping[str, int]) -> dict[str, int]:
    """Offsets after ``applied`` by topic, 0 where no change is among them.

    Raises UNREACHABLE when no broker answers in time.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "wal2lake-status",  # never joined: partitions are assigned
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 65_536,
            "log_level": 0,
        }
    )
    try:
        ends = {topic: _end(consumer, topic) for topic in applied}
        gaps = {topic: applied[topic] + 1 for topic in applied if ends[topic] > applied[topic] + 1}
        firsts = _first_changes(consumer, gaps)
    except KafkaException as error:
        raise _unreachable(bootstrap, error.args[0]) from None
    finally:
        consumer.close()
    return {topic: ends[topic] - firsts[topic] if topic in firsts else 0 for topic in applied}


def _end(consumer: Consumer, topic: str) -> int:
    marks = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)
    return int(marks[1]) if marks else 0


def _first_changes(consumer: Consumer, starts: Mapping[str, int]) -> dict[str, int]:
    """Offset of the first record from each start on; topics without one are left out."""
    if not starts:
        return {}
    consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in starts.items()])
    open_, found = set(starts), dict[str, int]()
    deadline = time.monotonic() + SECONDS
    while open_:
        message = consumer.poll(max(0.0, deadline - time.monotonic()))
        if message is None:
            # Not known in time: taken for a change, since too small a lag would mislead.
            return found | {topic: starts[topic] for topic in open_}
        topic = str(message.topic())
        if topic in open_ and not _ended(message):
            found[topic] = int(message.offset() or 0)
        if topic in open_:
            open_.remove(topic)
            consumer.pause([TopicPartition(topic, 0)])
    return found


def _ended(message: Message) -> bool:
    """Whether this is the end of the partition and not a record; other errors are raised."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
        raise KafkaException(error)
    return error is not None


def _unreachable(bootstrap: str, error: object) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"no Kafka broker answers at {bootstrap}",
        detail=str(error),
        remedy="wal2lake up, or correct kafka.bootstrap_servers",
    )
