"""The JSON topics read by an independent consumer: what was committed when, and where it lies."""

import json
from dataclasses import dataclass, field
from typing import Final

import psycopg
from confluent_kafka import Consumer, TopicPartition

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import end_offsets

SENTINEL: Final = "/sentinel/"
BATCH: Final = 5000


@dataclass(kw_only=True)
class Tail:
    """The events of the topics from its creation on, read when asked for."""

    bootstrap: str
    topics: list[str]
    times: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By topic: offset and the source's commit time in milliseconds, in order."""
    sentinels: dict[str, int] = field(default_factory=dict)  # path -> offset
    _from: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._from = end_offsets(self.bootstrap, self.topics)

    def read_until(self, sentinel: str, *, seconds: float) -> int:
        """Read on until the page view with this path; returns its offset.

        One slot feeds all topics in commit order, so whatever was committed before it is in its
        topic by then; what the other topics hold is read to its end afterwards.
        """
        consumer = self._consumer()
        try:
            while sentinel not in self.sentinels:
                if not self._take_some(consumer, seconds):
                    raise CdcError(
                        ErrorKind.TIMEOUT, f"no event for {seconds:.0f} s in the JSON topics"
                    )
            while self._take_some(consumer, 2.0):
                pass
        finally:
            consumer.close()
        return self.sentinels[sentinel]

    def first_after(self, topic: str, offset: int) -> int | None:
        """Commit time of the first event at or after the offset; None when there is none."""
        events = self.times.get(topic, [])
        return next((at for position, at in events if position >= offset), None)

    def _consumer(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "bench",  # asked for; nothing is committed
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(topic, 0, self._from[topic]) for topic in self.topics])
        return consumer

    def _take_some(self, consumer: Consumer, seconds: float) -> bool:
        """Wait so long for one message; take with it what is there already."""
        first = consumer.poll(seconds)
        if first is None:
            return False
        for message in [first, *consumer.consume(num_messages=BATCH, timeout=0.1)]:
            self._take(str(message.topic()), int(message.offset() or 0), message.value())
        return True

    def _take(self, topic: str, offset: int, value: bytes | None) -> None:
        known = self.times.setdefault(topic, [])
        if value is None:  # the tombstone behind a delete: committed with it
            known.append((offset, known[-1][1] if known else 0))
            return
        payload = json.loads(value)["payload"]
        known.append((offset, int(payload["source"]["ts_ms"])))
        path = str((payload["after"] or {}).get("path", ""))
        if path.startswith(SENTINEL):
            self.sentinels[path] = offset


def leave_sentinel(url: str, name: str) -> str:
    """Commit a page view that tells the end of a load; returns its path."""
    path = f"{SENTINEL}{name}"
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("insert into shop.page_views values (now(), null, %s, 0)", [path])
    return path
