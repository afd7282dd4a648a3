"""Letting the offsets of a topic go on where another one of its name had them.

What the lake holds is ordered by offsets, over all epochs. A topic that was made again counts
from zero, so it is filled up to the last offset that has landed, and emptied again. Kafka gives
offsets to records alone, one to each, and skips none: so there are as many records, of no bytes of
their own, in large compressed batches.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from confluent_kafka import KafkaException, Producer

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.same_topic import Expected, Found, broken
from cdc.kafka.topic_watch import found
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics
from cdc.waiting import poll

_RECORD: Final = {"key": b"", "value": b""}
"""A compacted topic takes none without a key."""
_FLUSH_SECONDS: Final = 60
_AT_A_TIME: Final = 100_000  # records; a few megabytes in the client
_TOLD: Final = 10_000_000
MOST: Final = 2_000_000_000
"""Offsets of a topic that are filled: some two hours of work, and 8 GB of disk."""
_PRODUCER: Final = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 100,
    "batch.size": 1_000_000,
    "batch.num.messages": _AT_A_TIME,
    "queue.buffering.max.messages": 2 * _AT_A_TIME,
}


def go_on(
    bootstrap: str,
    expected: Mapping[str, Expected],
    specs: Collection[TopicSpec],
    *,
    replication: int,
    say: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Make all topics of ``specs``, and the offsets of the expected ones go on; their names.

    One with more partitions is deleted first, with the events in it that have no order. Nobody
    may write into them meanwhile. Interrupted, it is done again by the next call. Raises CONFLICT
    for a topic with another policy, UNREACHABLE, and what ``refuse_far`` does. ``say`` hears of
    what takes long.
    """
    have = found(bootstrap, expected)
    wrong = _wrong(expected, have, specs)
    _refuse_far(expected, have, wrong)
    _delete(bootstrap, [t for t in wrong if t in have and have[t].partitions != 1])
    ensure_topics(bootstrap, specs, replication=replication)
    for topic, now in sorted(_made(bootstrap, wrong).items()):
        _fill(bootstrap, topic, now, expected[topic].last, say)
    return wrong


def refuse_far(
    bootstrap: str, expected: Mapping[str, Expected], specs: Collection[TopicSpec]
) -> None:
    """Raises CHAIN_BROKEN for a topic that would have to be filled for hours."""
    have = found(bootstrap, expected)
    _refuse_far(expected, have, _wrong(expected, have, specs))


def _wrong(
    expected: Mapping[str, Expected], have: Mapping[str, Found], specs: Collection[TopicSpec]
) -> list[str]:
    ours = {spec.name for spec in specs}
    return [topic for topic in broken(expected, have) if topic in ours]


def _refuse_far(
    expected: Mapping[str, Expected], have: Mapping[str, Found], wrong: Sequence[str]
) -> None:
    for topic in wrong:
        goes_on = topic in have and have[topic].partitions == 1
        first = have[topic].end if goes_on else 0
        if (missing := expected[topic].last + 1 - first) > MOST:
            raise CdcError(
                ErrorKind.CHAIN_BROKEN,
                f"topic {topic} would begin {missing:,} offsets before where it was",
                detail=f"each offset takes a record, and no more than {MOST:,} are written",
                remedy="restore the topic; or begin anew: another name and another lake.path in "
                "wal2lake.yaml, then wal2lake up",
            )


def _delete(bootstrap: str, topics: list[str]) -> None:
    """Returns when the broker has them no more: it takes its time, and no new one before."""
    delete_topics(bootstrap, topics)
    left = poll(
        partial(found, bootstrap, topics), lambda here: not here, every=0.2, seconds=_FLUSH_SECONDS
    )
    if left is None:
        raise CdcError(ErrorKind.TIMEOUT, f"topic {topics[0]} was deleted and is still there")


def _made(bootstrap: str, topics: Sequence[str]) -> dict[str, Found]:
    """As they are now that they were made: a broker may hear of a topic after it was told so.

    One that was passed over would begin at offset 0 again.
    """
    here = poll(
        partial(found, bootstrap, topics),
        lambda here: len(here) >= len(topics),
        every=0.2,
        seconds=_FLUSH_SECONDS,
    )
    if here is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"of topics {', '.join(topics)} some were made and are not there",
            remedy="run wal2lake up --new-epoch again",
        )
    return here


def _fill(bootstrap: str, topic: str, now: Found, last: int, say: Callable[[str], None]) -> None:
    """Records up to that offset, gone again at once. One that was interrupted is gone on with."""
    producer = Producer({"bootstrap.servers": bootstrap, **_PRODUCER})
    records = [_RECORD] * _AT_A_TIME
    for first in range(now.end, last + 1, _AT_A_TIME):
        if (first - now.end) % _TOLD == 0:
            say(f"topic {topic} goes on: offset {first:,} of {last + 1:,}")
        producer.produce_batch(topic, records[: last + 1 - first], partition=0)
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
