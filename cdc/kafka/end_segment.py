"""Have the broker begin a new segment of a topic: it deletes no segment that it writes to."""

from typing import Final

from confluent_kafka import KafkaException, Message

from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.kafka.broker import Broker
from cdc.kafka.cleanup_policy import lengthen_segments, shorten_segments
from cdc.kafka.clients import admin, producer
from cdc.kafka.refusal import failed

_SECONDS: Final = 20.0


def end_segment(broker: Broker, topic: str, name: str) -> int:
    """Begin a segment of a topic of one partition, and return its first offset.

    That is of a record of a transaction that is given up: nobody who reads what is committed sees
    it. ``name`` is the transaction's id, for rights. A kill in between leaves a setting, which the
    next start takes back (``cdc/kafka/topics.py``). Raises CONFIG without the right, UNREACHABLE.
    """
    client = admin(broker)
    reach(Failpoint.BEFORE_SEGMENT_END)
    shorten_segments(client, topic)
    try:
        offset = _given_up(broker, topic, name)
        reach(Failpoint.AFTER_SEGMENT_END)
    finally:
        lengthen_segments(client, topic)
    return offset


def _given_up(broker: Broker, topic: str, name: str) -> int:
    """Write a record in a transaction, abort that, and return the record's offset."""
    settings = {"transactional.id": name, "transaction.timeout.ms": int(_SECONDS * 1000)}
    client, written = producer(broker, settings), list[Message]()
    try:
        client.init_transactions(_SECONDS)
        client.begin_transaction()
        client.produce(
            topic, key=b"", value=b"", partition=0, on_delivery=lambda _, m: written.append(m)
        )
        client.flush(_SECONDS)
        client.abort_transaction(_SECONDS)
    except KafkaException as error:
        raise failed(f"ending a segment of topic {topic}", error) from None
    if not written or written[0].error() is not None or (offset := written[0].offset()) is None:
        raise CdcError(ErrorKind.UNREACHABLE, f"ending a segment of topic {topic} failed")
    return offset
