"""The end of a silence is seen on a real broker, through Kafka's transactions."""

import threading

import pytest
from confluent_kafka import Producer

from cdc.kafka.broker import Broker
from cdc.kafka.quiet_stream import QuietStream
from cdc.kafka.topics import TopicSpec, ensure_topics
from tests.unit.kafka.test_quiet_stream import SCHEMA, begin, end

pytestmark = pytest.mark.integration
MARKERS = "silence.transaction"


class Connector:
    """Writes both markers of each transaction in one transaction of Kafka, as the worker does."""

    def __init__(self, broker: str) -> None:
        ensure_topics(Broker(broker), [TopicSpec(MARKERS)])
        self._producer = Producer({"bootstrap.servers": broker, "transactional.id": MARKERS})
        self._producer.init_transactions(60)

    def send(self, **counts: int) -> None:
        self._producer.begin_transaction()
        for marker in (begin(), end(**counts)):
            self._producer.produce(MARKERS, value=marker.value(), partition=0)
        self._producer.commit_transaction(60)


def waiting(broker: str, ended: threading.Event) -> threading.Thread:
    """Wait for the end of the silence in a thread."""
    stream = QuietStream(
        Broker(broker), prefix="silence", markers=MARKERS, schemas_of=lambda _ids: {1: SCHEMA}
    )

    def wait() -> None:
        stream.wait({}, {MARKERS: 1}, ended, seconds=3600.0)
        stream.close()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_silence_ends_with_the_first_change(broker: str) -> None:
    connector, ended = Connector(broker), threading.Event()
    connector.send(wal2lake__heartbeat=1)
    thread = waiting(broker, ended)
    connector.send(wal2lake__heartbeat=1)
    connector.send(app__t=1)
    thread.join(60)
    assert not thread.is_alive()
