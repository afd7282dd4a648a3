"""A commit that the broker confirmed can be read, even if it is killed a moment later.

The broker confirms a commit once it is in the transaction log, and writes the markers in the
partitions afterwards. A broker that is killed in between writes them at its next start.
"""

import contextlib

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdc.stack.servers.kafka import silent_logger
from tests.servers.fixtures import Makers
from tests.waiting import until

pytestmark = pytest.mark.integration

PARTITIONS = 300
"""Enough partitions that writing their markers takes longer than killing the broker."""
TIMES = 3
READ_SECONDS = 30


def test_a_commit_that_was_answered_reaches_every_partition(servers: Makers) -> None:
    kafka = servers["kafka"]()
    address = kafka.start()
    _create(address)

    for number in range(TIMES):
        _commit(address, number)
        kafka.kill()
        kafka.start()
        _await_all(address, number)


def _create(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("many", PARTITIONS, 1)])["many"].result(30)


def _commit(address: str, number: int) -> None:
    settings = {"bootstrap.servers": address, "transactional.id": "writer"}
    producer = Producer(settings, logger=silent_logger())
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce("many", str(number), partition=partition)
    producer.commit_transaction(30)


def _await_all(address: str, number: int) -> None:
    """Wait until the message is readable in each partition, so no marker below it is missing."""
    settings = {"bootstrap.servers": address, "group.id": "reader"}
    consumer = Consumer({**settings, "isolation.level": "read_committed"}, logger=silent_logger())
    with contextlib.closing(consumer):
        missing = {(partition, number) for partition in range(PARTITIONS)}
        consumer.assign([TopicPartition("many", partition, 0) for partition in range(PARTITIONS)])

        def all_are_read() -> bool:
            for message in consumer.consume(PARTITIONS, timeout=1):
                if not message.error():
                    missing.discard((message.partition(), int(message.value() or b"")))
            return not missing

        until(all_are_read, READ_SECONDS)
