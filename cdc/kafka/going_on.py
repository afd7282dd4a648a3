"""Letting the offsets of a topic go on where another one of its name had them.

What the lake holds is ordered by offsets, over all epochs. A topic that was made again counts
from zero, so it is filled up to the last offset that has landed, and emptied again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from confluent_kafka import KafkaException, Producer
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.continuing import Expected, Found, broken
from cdc.kafka.emptying import empty_topic
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics
from cdc.kafka.topics_found import found

_KEY: Final = b"wal2lake: an offset that was given before"
_FLUSH_SECONDS: Final = 60
_CHUNK: Final = 50_000


def go_on(
    bootstrap: str,
    expected: Mapping[str, Expected],
    specs: Collection[TopicSpec],
    *,
    replication: int,
) -> list[str]:
    """Make all topics of ``specs``, and the offsets of the expected ones go on; their names.

    One with more partitions is deleted first, with the events in it that have no order. Nobody
    may write into them meanwhile. Interrupted, it is done again by the next call. Raises CONFLICT
    for a topic with another policy, UNREACHABLE.
    """
    have = found(bootstrap, expected)
    ours = {spec.name for spec in specs}
    wrong = [topic for topic in broken(expected, have) if topic in ours]
    _delete(bootstrap, [t for t in wrong if t in have and have[t].partitions != 1])
    ensure_topics(bootstrap, specs, replication=replication)
    for topic, now in sorted(_made(bootstrap, wrong).items()):
        _fill(bootstrap, topic, now, expected[topic].last)
    return wrong


def _delete(bootstrap: str, topics: list[str]) -> None:
    """Returns when the broker has them no more: it takes its time, and no new one before."""
    delete_topics(bootstrap, topics)
    attempts = Retrying(
        stop=stop_after_delay(_FLUSH_SECONDS), wait=wait_fixed(0.2), retry=retry_if_result(bool)
    )
    try:
        attempts(found, bootstrap, topics)
    except RetryError:
        raise CdcError(
            ErrorKind.TIMEOUT, f"topic {topics[0]} was deleted and is still there"
        ) from None


def _made(bootstrap: str, topics: Sequence[str]) -> dict[str, Found]:
    """As they are now that they were made: a broker may hear of a topic after it was told so.

    One that was passed over would begin at offset 0 again.
    """
    attempts = Retrying(
        stop=stop_after_delay(_FLUSH_SECONDS),
        wait=wait_fixed(0.2),
        retry=retry_if_result(lambda here: len(here) < len(topics)),
    )
    try:
        here: dict[str, Found] = attempts(found, bootstrap, topics)
    except RetryError:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"of topics {', '.join(topics)} some were made and are not there",
            remedy="run wal2lake up --new-epoch again",
        ) from None
    return here


def _fill(bootstrap: str, topic: str, now: Found, last: int) -> None:
    """Records up to that offset, gone again at once; a compacted topic takes none without key."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(now.end, last + 1):
        producer.produce(topic, key=_KEY, value=b"", partition=0)
        if number % _CHUNK == 0:
            _flush(producer, topic)
    _flush(producer, topic)
    empty_topic(bootstrap, topic, before=last + 1)


def _flush(producer: Producer, topic: str) -> None:
    try:
        left = producer.flush(_FLUSH_SECONDS)
    except KafkaException as error:
        raise _unfilled(topic, str(error.args[0].str())) from None
    if left:
        raise _unfilled(topic, f"{left} records were not taken")


def _unfilled(topic: str, detail: str) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"filling topic {topic} up to where it was failed",
        detail=detail,
        remedy="run wal2lake up --new-epoch again",
    )
