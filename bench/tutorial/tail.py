"""Reads the JSON topics with an independent consumer, for the offset and time of commits."""

import json
from dataclasses import dataclass, field
from typing import Final

import psycopg
from confluent_kafka import Consumer, TopicPartition

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.offsets import end_offsets

SENTINEL: Final = "/sentinel/"
BATCH: Final = 5000


@dataclass(kw_only=True)
class Tail:
    """Reads, on demand, the events that the topics receive from its creation on."""

    bootstrap: str
    topics: list[str]
    times: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Offset and source commit time in milliseconds of each event, in order, by topic."""
    sentinels: dict[str, int] = field(default_factory=dict)  # path -> offset
    _from: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._from = end_offsets(Broker(self.bootstrap), self.topics)

    def read_until(self, sentinel: str, *, seconds: float) -> int:
        """Read up to the page view with this path and return its offset.

        One slot feeds all topics in commit order, so everything committed earlier is in its topic
        by then; the other topics are read to their ends afterwards. Raises TIMEOUT if no event
        comes for ``seconds``.
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
        """Return the commit time in milliseconds of the first event from the offset on, or None."""
        events = self.times.get(topic, [])
        return next((at for position, at in events if position >= offset), None)

    def _consumer(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "bench",  # required by the client; nothing is committed
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(topic, 0, self._from[topic]) for topic in self.topics])
        return consumer

    def _take_some(self, consumer: Consumer, seconds: float) -> bool:
        """Wait for one message and take those that are available with it; False on timeout."""
        first = consumer.poll(seconds)
        if first is None:
            return False
        for message in [first, *consumer.consume(num_messages=BATCH, timeout=0.1)]:
            self._take(str(message.topic()), int(message.offset() or 0), message.value())
        return True

    def _take(self, topic: str, offset: int, value: bytes | None) -> None:
        times = self.times.setdefault(topic, [])
        if value is None:  # the tombstone of a delete, committed with it
            times.append((offset, times[-1][1] if times else 0))
            return
        payload = json.loads(value)["payload"]
        times.append((offset, int(payload["source"]["ts_ms"])))
        path = str((payload["after"] or {}).get("path", ""))
        if path.startswith(SENTINEL):
            self.sentinels[path] = offset


def leave_sentinel(url: str, name: str) -> str:
    """Commit a page view that marks the end of a load; return its path."""
    path = f"{SENTINEL}{name}"
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("insert into shop.page_views values (now(), null, %s, 0)", [path])
    return path
