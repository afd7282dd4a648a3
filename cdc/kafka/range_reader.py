"""Reads ranges of offsets with a consumer that stays connected, without Spark.

Spark starts one task for each topic that has something new, and brings the rows of all of them
back to this process: most of a second for a few hundred records.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc.kafka.broker import Broker
from cdc.kafka.clients import reading_consumer

READ_SECONDS: Final = 5.0
"""After that, Spark reads the records: it tells what is wrong with Kafka, and waits for it."""
_TIMED_OUT: Final = KafkaError._TIMED_OUT  # noqa: SLF001 - librdkafka's own, and documented
_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the same
_AT_ONCE: Final = 10_000  # records
logger = structlog.get_logger(__name__)


class RangeReader:
    """Reads the committed records of ranges; used by the landing thread alone.

    Nothing is read ahead, so no record is older than the range that asks for it.
    """

    def __init__(self, broker: Broker, *, group: str) -> None:
        """``group`` is a name that the client asks for; no group is ever joined."""
        self._broker = broker
        self._group = group
        self._consumer: Consumer | None = None

    def read(
        self, ranges: Mapping[str, range], most_bytes: int, seconds: float = READ_SECONDS
    ) -> list[Message] | None:
        """Return all committed records of the ranges, by topic, in no order of topics.

        Returns None if they have more than ``most_bytes`` of keys and values, if ``seconds`` are
        over, and for every error: of Kafka, or because a range begins before Kafka's first offset.
        """
        wanted = {topic: offsets for topic, offsets in ranges.items() if offsets}
        if not wanted:
            return []
        try:
            return self._read(wanted, most_bytes, time.monotonic() + seconds)
        except KafkaException as error:
            logger.info("left to spark", reason=str(error.args[0]))
            return None

    def close(self) -> None:
        """Give up the consumer."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _read(
        self, wanted: Mapping[str, range], most_bytes: int, until: float
    ) -> list[Message] | None:
        consumer = self._opened()
        consumer.assign([TopicPartition(topic, 0, r.start) for topic, r in wanted.items()])
        try:
            found, size, open_topics = list[Message](), 0, set(wanted)
            while open_topics:
                for message in _polled(consumer, until):
                    topic, offset = str(message.topic()), int(message.offset() or 0)
                    is_end = message.error() is not None
                    if offset + (not is_end) >= wanted[topic].stop:
                        open_topics.discard(topic)
                    if not is_end and offset in wanted[topic]:
                        found.append(message)
                        size += len(message.key() or b"") + len(message.value() or b"")
                if size > most_bytes:
                    return None
            return found
        finally:
            consumer.unassign()

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._consumer = reading_consumer(
                self._broker,
                self._group,
                # The last offset of a range is mostly a marker of Kafka's transactions. Only an
                # empty answer shows that nothing follows it.
                enable_partition_eof=True,
                fetch_wait_max_ms=10,
            )
        return self._consumer


def _polled(consumer: Consumer, until: float) -> Iterator[Message]:
    """Yield records and ends of topics that have come; raise KafkaException for other errors."""
    first = consumer.poll(max(0.0, until - time.monotonic()))
    if first is None:
        raise KafkaException(KafkaError(_TIMED_OUT, "Kafka did not answer in time"))
    for message in (first, *consumer.consume(_AT_ONCE, 0)):
        error = message.error()
        if error is not None and error.code() != _END:
            raise KafkaException(error)
        yield message
