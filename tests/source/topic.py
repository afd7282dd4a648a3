"""Read everything committed in a topic, decoded without any of our own code."""

import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import fastavro
import httpx
from confluent_kafka import Consumer, TopicPartition

from cdc.kafka.offsets import end_offsets
from cdc.state.endpoints import Endpoints
from cdc.waiting import until

Event = tuple[Any, Any]


@dataclass
class Topic:
    """Reads a topic of the chain's broker."""

    chain: Endpoints
    name: str
    _schemas: dict[int, str] = field(default_factory=dict)
    """By its number, what the registry has told: it never changes."""

    def events(self) -> list[Event]:
        """Return all committed events as pairs of key and value."""
        return [(self._decode(key), self._decode(value)) for key, value in self._records()]

    def value_schema(self) -> str:
        """Return the Avro schema of the first event with a value."""
        value = next(value for _, value in self._records() if value is not None)
        return self._schema(value)

    def until(self, done: Callable[[list[Event]], bool]) -> list[Event]:
        """Wait until ``done`` is true of all events, and return them."""
        found: list[Event] = []

        def seen() -> bool:
            found[:] = self.events()
            return done(found)

        until(seen, 60, f"{self.name} did not reach the expected state")
        return found

    def _records(self) -> list[tuple[bytes | None, bytes | None]]:
        end = end_offsets(self.chain.kafka, [self.name])[self.name]
        settings = {
            "bootstrap.servers": self.chain.kafka.bootstrap,
            "group.id": "test",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(self.name, 0, 0)])
        found = []
        try:
            while end > 0:
                message = consumer.poll(20)
                assert message is not None
                if message.error() is not None:  # the end of the partition
                    break
                found.append((message.key(), message.value()))
        finally:
            consumer.close()
        return found

    def _schema(self, raw: bytes) -> str:
        (schema_id,) = struct.unpack(">xi", raw[:5])
        if schema_id not in self._schemas:
            url = f"{self.chain.registry}/apis/ccompat/v7/schemas/ids/{schema_id}"
            self._schemas[schema_id] = httpx.get(url).raise_for_status().json()["schema"]
        return self._schemas[schema_id]

    def _decode(self, raw: bytes | None) -> Any:  # noqa: ANN401 - Avro is JSON
        if raw is None:
            return None
        schema = fastavro.parse_schema(json.loads(self._schema(raw)))
        return fastavro.schemaless_reader(io.BytesIO(raw[5:]), schema, None)


def ops(events: list[Event]) -> list[str | None]:
    """Return each event's ``op``, or None for a tombstone."""
    return [value and value["op"] for _, value in events]
