"""Makes the offsets of a recreated topic continue where the old topic of its name ended.

The lake orders events by offset, over all epochs. A recreated topic starts at offset zero, so it is
filled up to the last offset that has landed, and emptied again. Kafka assigns one offset per
record and skips none, so this takes one empty record for each offset, in large compressed batches.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from confluent_kafka import KafkaException, Producer

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.clients import producer
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.same_topic import ExistingTopic, ExpectedTopic, broken
from cdc.kafka.topic_watch import existing_topics
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics
from cdc.waiting import poll

_RECORD: Final = {"key": b"", "value": b""}
"""The empty key is needed: a compacted topic refuses records without one."""
_FLUSH_SECONDS: Final = 60
_AT_A_TIME: Final = 100_000  # records; a few megabytes in the client
_REPORTED: Final = 10_000_000  # records between two progress messages
MOST: Final = 2_000_000_000
"""The most offsets of a topic that are filled: about two hours of work, and 8 GB of disk."""
_PRODUCER: Final = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 100,
    "batch.size": 1_000_000,
    "batch.num.messages": _AT_A_TIME,
    "queue.buffering.max.messages": 2 * _AT_A_TIME,
}


def refill_topics(
    broker: Broker,
    expected: Mapping[str, ExpectedTopic],
    specs: Collection[TopicSpec],
    *,
    replication: int,
    say: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Create all topics of ``specs``, and continue the offsets of expected topics that were lost.

    Returns the names of the topics that were filled. A topic with more than one partition is
    deleted first, because its events have no order. Nobody may write to the topics meanwhile. After
    an interruption the next call finishes the work. ``say`` receives progress messages.

    Raises CONFLICT for a topic with another policy, UNREACHABLE, TIMEOUT, and what ``refuse_far``
    raises.
    """
    existing = existing_topics(broker, expected)
    wrong = _wrong(expected, existing, specs)
    _refuse_far(expected, existing, wrong)
    _delete(broker, [t for t in wrong if t in existing and existing[t].partitions != 1])
    ensure_topics(broker, specs, replication=replication)
    for topic, now in sorted(_created(broker, wrong).items()):
        _fill(broker, topic, now, expected[topic].last, say)
    return wrong


def refuse_far(
    broker: Broker, expected: Mapping[str, ExpectedTopic], specs: Collection[TopicSpec]
) -> None:
    """Raise CHAIN_BROKEN for a topic with more than ``MOST`` offsets to fill."""
    existing = existing_topics(broker, expected)
    _refuse_far(expected, existing, _wrong(expected, existing, specs))


def _wrong(
    expected: Mapping[str, ExpectedTopic],
    existing: Mapping[str, ExistingTopic],
    specs: Collection[TopicSpec],
) -> list[str]:
    ours = {spec.name for spec in specs}
    return [topic for topic in broken(expected, existing) if topic in ours]


def _refuse_far(
    expected: Mapping[str, ExpectedTopic],
    existing: Mapping[str, ExistingTopic],
    wrong: Sequence[str],
) -> None:
    for topic in wrong:
        is_usable = topic in existing and existing[topic].partitions == 1
        first = existing[topic].end if is_usable else 0
        if (missing := expected[topic].last + 1 - first) > MOST:
            raise CdcError(
                ErrorKind.CHAIN_BROKEN,
                f"topic {topic} ends {missing:,} offsets short of its last landed event",
                detail=f"filling takes one record per offset, and at most {MOST:,} are written",
                remedy="restore the topic; or set another name and another lake.path in "
                "wal2lake.yaml, and start over with wal2lake up",
            )


def _delete(broker: Broker, topics: list[str]) -> None:
    """Delete topics, and wait until they are gone: the broker refuses new ones until then."""
    delete_topics(broker, topics)
    left = poll(
        partial(existing_topics, broker, topics),
        lambda answer: not answer,
        every=0.2,
        seconds=_FLUSH_SECONDS,
    )
    if left is None:
        raise CdcError(ErrorKind.TIMEOUT, f"topic {topics[0]} was deleted, but still exists")


def _created(broker: Broker, topics: Sequence[str]) -> dict[str, ExistingTopic]:
    """Wait until the broker knows all topics: it may learn of a new topic with a delay.

    A topic that is left out here would begin at offset 0 again.
    """
    existing = poll(
        partial(existing_topics, broker, topics),
        lambda answer: len(answer) >= len(topics),
        every=0.2,
        seconds=_FLUSH_SECONDS,
    )
    if existing is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"topics were created, but some do not appear: {', '.join(topics)}",
            remedy="run wal2lake up --new-epoch again",
        )
    return existing


def _fill(
    broker: Broker, topic: str, now: ExistingTopic, last: int, say: Callable[[str], None]
) -> None:
    """Write records up to the offset and delete them again; go on after an interrupted attempt."""
    client = producer(broker, _PRODUCER)
    records = [_RECORD] * _AT_A_TIME
    for first in range(now.end, last + 1, _AT_A_TIME):
        if (first - now.end) % _REPORTED == 0:
            say(f"filling topic {topic}: offset {first:,} of {last + 1:,}")
        client.produce_batch(topic, records[: last + 1 - first], partition=0)
        _flush(client, topic)
    empty_topic(broker, topic, before=last + 1)


def _flush(client: Producer, topic: str) -> None:
    try:
        left = client.flush(_FLUSH_SECONDS)
    except KafkaException as error:
        raise _unfilled(topic, str(error.args[0].str())) from None
    if left:
        raise _unfilled(topic, f"{left} records were not acknowledged")


def _unfilled(topic: str, detail: str) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"topic {topic} could not be filled up to its last landed event",
        detail=detail,
        remedy="run wal2lake up --new-epoch again",
    )
