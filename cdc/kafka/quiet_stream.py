"""Waits while nothing but the connector's heartbeats comes, without landing each of them.

Every transaction of the source leaves its BEGIN and its END in the topic of transaction markers,
whichever tables it is in. So one consumer that the broker answers when there is a record sees that
there is something to land, sooner than a query that asks for the end of every topic again and again
and at no cost until then.
"""

import threading
import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from cdc.errors import CdcError
from cdc.events import avro
from cdc.events.transactions import BEGIN, Marker, is_heartbeat, marker
from cdc.kafka.broker import Broker
from cdc.kafka.clients import reading_consumer
from cdc.kafka.registry_client import SchemaLookup

MOST_SECONDS: Final = 15.0
"""How long heartbeats wait at most: short beside what the health watch allows a hop."""
_LOOK_SECONDS: Final = 0.25
"""How long one poll waits: a stop is noticed after it, and a transaction without END counts."""


class QuietStream:
    """Waits for the end of a silence in the stream; used by the landing thread alone.

    A barrier ends it (``is_heartbeat``), so that nobody waits for more than is to be landed.
    """

    def __init__(
        self, broker: Broker, *, prefix: str, markers: str, schemas_of: SchemaLookup
    ) -> None:
        """``markers`` is the topic of transaction markers, ``prefix`` that of all topics."""
        self._broker = broker
        self._prefix = prefix
        self._markers = markers
        self._schemas_of = schemas_of
        self._consumer: Consumer | None = None

    def wait(
        self,
        before: Mapping[str, int],
        after: Mapping[str, int],
        ended: threading.Event,
        seconds: float = MOST_SECONDS,
    ) -> None:
        """Wait while nothing but heartbeats comes; return at once if there was anything else.

        ``before`` and ``after`` are the offsets of the last events in the log before and after the
        newest landing, by topic. Returns after ``seconds`` at the latest, when ``ended`` is set,
        and when Kafka or the registry does not answer.
        """
        landed = {topic for topic, last in after.items() if last != before.get(topic)}
        if landed != {self._markers}:
            return
        try:
            self._wait(before.get(self._markers, -1) + 1, ended, time.monotonic() + seconds)
        except (KafkaException, CdcError):
            return  # whoever lands next says what is wrong

    def close(self) -> None:
        """Give up the consumer."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _wait(self, begin: int, ended: threading.Event, until: float) -> None:
        consumer = self._opened()
        consumer.assign([TopicPartition(self._markers, 0, begin)])
        try:
            is_open = False
            while not ended.is_set() and time.monotonic() < until:
                message = consumer.poll(_LOOK_SECONDS)
                if message is None and not is_open:
                    continue
                found = None if message is None else self._marker(message)
                if found is None or not (
                    found.status == BEGIN or is_heartbeat(found, self._prefix)
                ):
                    return
                is_open = found.status == BEGIN
        finally:
            consumer.unassign()

    def _marker(self, message: Message) -> Marker | None:
        """Return the marker; None if the record is not one that can be read."""
        frame = None if message.error() else avro.frame(message.value())
        schemas = {} if frame is None else self._schemas_of([frame.schema_id])
        if frame is None or frame.schema_id not in schemas:
            return None
        return marker(avro.decode(schemas[frame.schema_id], frame.body), prefix=self._prefix)

    def _opened(self) -> Consumer:
        if self._consumer is None:
            group = f"{self._prefix}.quiet"
            self._consumer = reading_consumer(self._broker, group, fetch_wait_max_ms=10_000)
        return self._consumer
