"""Read what the connector wrote into a topic, with every label that could define an order.

The labels are decoded without wal2lake's code, which only makes the event that each label carries
for the fold.
"""

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
import httpx
from confluent_kafka import Consumer, Message, TopicPartition

from cdc.events.envelope import ChangeEvent, change_event
from cdc.state.endpoints import Endpoints

_SECONDS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Describes one event of a table, with its place according to the connector and to Kafka."""

    offset: int  # in Kafka
    op: str
    row: dict[str, Any]  # after; before for a delete
    lsn: int | None
    commit: int | None  # sequence[0]: the end of the commit that the connector saw last
    sequence_lsn: int | None  # sequence[1]
    snapshot: str | None
    txid: int | None
    transaction: str | None  # transaction.id
    order: int | None  # transaction.total_order
    ts_ms: int
    event: ChangeEvent

    @property
    def place(self) -> tuple[int | None, int | None]:
        """The transaction and the place in it, which a second delivery cannot change."""
        return self.txid, self.order

    @property
    def content(self) -> tuple[Any, ...]:
        """Everything about the event that comes from Postgres."""
        return (self.op, tuple(self.row.items()), self.lsn, *self.place, self.ts_ms)


@dataclass(kw_only=True)
class Reader:
    """Reads one pipeline's topics, each of one partition."""

    endpoints: Endpoints
    schemas: dict[int, Any] = field(default_factory=dict)

    def labels(self, topic: str, start: int, *, committed: bool = True) -> list[Label]:
        """Return the events from an offset; without ``committed`` also aborted ones."""
        return [
            self._label(message)
            for message in self._messages(topic, start, committed=committed)
            if message.value() is not None
        ]

    def decoded(self, topic: str) -> list[dict[str, Any]]:
        """Return the decoded values of a topic."""
        return [self.decode(m.value()) for m in self._messages(topic, 0, committed=True)]

    def _messages(self, topic: str, start: int, *, committed: bool) -> Iterator[Message]:
        settings = {
            "bootstrap.servers": self.endpoints.kafka.bootstrap,
            "group.id": "experiments",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(topic, 0, start)])
        try:
            while (message := consumer.poll(_SECONDS)) is not None and message.error() is None:
                yield message
            assert message is not None, f"{topic} has no end"
        finally:
            consumer.close()

    def _label(self, message: Message) -> Label:
        value = self.decode(message.value())
        source, transaction = value["source"], value["transaction"] or {}
        commit, lsn = json.loads(source["sequence"])
        topic, offset = message.topic(), message.offset()
        assert topic is not None
        assert offset is not None
        return Label(
            offset=offset,
            op=value["op"],
            row=value["after"] or value["before"],
            lsn=source["lsn"],
            commit=None if commit is None else int(commit),
            sequence_lsn=None if lsn is None else int(lsn),
            snapshot=source["snapshot"],
            txid=source["txId"],
            transaction=transaction.get("id"),
            order=transaction.get("total_order"),
            ts_ms=source["ts_ms"],
            event=change_event(
                topic, offset, value, self.decode(message.key()), dict(message.headers() or [])
            ),
        )

    def decode(self, raw: Any) -> Any:  # noqa: ANN401 - Avro is JSON
        """Decode a message by its schema from the registry."""
        (number,) = struct.unpack(">xi", raw[:5])
        if number not in self.schemas:
            url = f"{self.endpoints.registry}/apis/ccompat/v7/schemas/ids/{number}"
            text = httpx.get(url).raise_for_status().json()["schema"]
            self.schemas[number] = fastavro.parse_schema(json.loads(text))
        return fastavro.schemaless_reader(io.BytesIO(raw[5:]), self.schemas[number], None)
