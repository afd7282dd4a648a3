"""Debezium alone: the servers and the connector, without a job."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from bench.core.figure import Figure, Outcome
from bench.core.room import Room
from bench.whole.burst import Burst, burst
from bench.whole.code import ours
from bench.whole.installation import NAME, Installation
from bench.whole.tables import SCHEMA, names
from cdc.capture.bootstrap import establish
from cdc.kafka.broker import Broker
from cdc.kafka.offsets import end_offsets
from cdc.stack.embedded import running
from cdc.state.pipeline import Pipeline
from cdc.waiting import until

BATCH: Final = 10_000
QUIET_SECONDS: Final = 2.0
"""Without a new event, so that the last one has arrived."""
_WAIT_SECONDS: Final = 0.05


def debezium_alone(room: Room, root: Path, *, tables: int) -> Iterator[Outcome]:
    """Yield the rate at which changes reach Kafka, and that of a consumer to nowhere."""
    one = Installation(root=root, code=ours(), snapshot="connector")
    rows = room.sizes.rows_per_table
    one.create(tables=tables, rows=rows)
    topics = [f"{NAME}.{SCHEMA}.{name}" for name in names(tables)]
    with running(one.config) as endpoints:
        establish(Pipeline(one.config, endpoints))
        _await_events(
            endpoints.kafka.bootstrap, topics, tables * rows, room.sizes.patience_seconds * 2
        )
        before = end_offsets(endpoints.kafka, topics)
        done = burst(endpoints.source_url, tables=names(tables), changes=room.sizes.burst_changes,
                     rows=rows, seed=room.seed)  # fmt: skip
        wanted = sum(before.values()) + done.changes
        ended = _await_last(
            endpoints.kafka.bootstrap, topics, wanted, room.sizes.patience_seconds * 5
        )
        yield _rate(done, ended - done.began, tables)
        after = end_offsets(endpoints.kafka, topics)
        events, seconds = consume(
            endpoints.kafka.bootstrap, {t: (before[t], after[t]) for t in topics}
        )
    yield Figure(name="limit", way="Kafka consumer to nowhere", unit="events/s",
                 samples=(events / seconds,))  # fmt: skip


def _rate(done: Burst, seconds: float, tables: int) -> Figure:
    return Figure(
        name="sustained rate", way="Debezium alone", unit="changes/s",
        samples=(done.changes / seconds,),
        parameters={"changes": done.changes, "tables": tables},
    )  # fmt: skip


def _await_events(kafka: str, topics: list[str], count: int, seconds: float) -> None:
    """Wait until the topics have so many offsets: events, tombstones and Kafka's own marks."""
    until(
        lambda: sum(end_offsets(Broker(kafka), topics).values()) >= count,
        seconds,
        f"{count} events did not reach Kafka",
    )


def _await_last(kafka: str, topics: list[str], count: int, seconds: float) -> float:
    """Wait until the topics have so many offsets and no more come.

    Return when the last one was seen, in seconds since 1970. A count would not do: nobody knows how
    many marks of its transactions Kafka adds.
    """
    seen, at = -1, 0.0

    def is_over() -> bool:
        nonlocal seen, at
        found = sum(end_offsets(Broker(kafka), topics).values())
        if found != seen:
            seen, at = found, time.time()
        return seen >= count and time.time() - at > QUIET_SECONDS

    until(is_over, seconds, f"{count} events did not reach Kafka")
    return at


def consume(kafka: str, ranges: dict[str, tuple[int, int]]) -> tuple[int, float]:
    """Read the offsets of each topic and drop them; return the messages and the seconds."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "bench",  # required by the client; nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    left = {topic for topic, (first, end) in ranges.items() if end > first}
    consumer.assign([TopicPartition(topic, 0, ranges[topic][0]) for topic in left])
    count, began = 0, time.monotonic()
    try:
        while left:
            for message in consumer.consume(BATCH, _WAIT_SECONDS):
                if message.error() is not None:
                    left.discard(str(message.topic()))  # its end
                else:
                    count += 1
    finally:
        consumer.close()
    return count, time.monotonic() - began
