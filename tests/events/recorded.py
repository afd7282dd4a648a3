"""Reads the recorded events of ``tests/data/events`` with the independent decoder."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cdc.events import avro
from cdc.events.envelope import ChangeEvent, change_event

FOLDER = Path(__file__).resolve().parent.parent / "data" / "events"
PREFIX = "wal2lake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A Kafka record as the log holds it."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()

    def row(self) -> tuple[Any, ...]:
        """In the columns of ``LOG_COLUMNS``."""
        ids = map(_schema_id, (self.key, self.value))
        return (self.topic, self.offset, self.key, self.value, list(self.headers), *ids)


LOG_COLUMNS = (
    "topic string, offset bigint, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, key_schema_id int, value_schema_id int"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    schemas: dict[int, str]
    messages: tuple[Message, ...]
    placeholder: str
    expected: dict[str, list[dict[str, str | None]]]

    def of(self, topic: str) -> list[Message]:
        return [message for message in self.messages if message.topic == topic]

    def written(self, topic: str) -> dict[int, str]:
        """Writer schemas of a topic's values."""
        frames = [avro.frame(message.value) for message in self.of(topic)]
        return {f.schema_id: self.schemas[f.schema_id] for f in frames if f is not None}

    def decoded(self, data: bytes | None) -> dict[str, Any] | None:
        found = avro.frame(data)
        return None if found is None else avro.decode(self.schemas[found.schema_id], found.body)

    def events(self, topic: str) -> list[ChangeEvent]:
        return [
            change_event(
                topic,
                message.offset,
                value,
                self.decoded(message.key),
                [name for name, _ in message.headers],
            )
            for message in self.of(topic)
            if (value := self.decoded(message.value)) is not None
        ]


@cache
def recording(name: str) -> Recording:
    raw = json.loads((FOLDER / f"{name}.json").read_text())
    return Recording(
        schemas={int(number): text for number, text in raw["schemas"].items()},
        messages=tuple(_message(record) for record in raw["records"]),
        placeholder=raw["placeholder"],
        expected=raw["expected"],
    )


def table_topic(table: str) -> str:
    return f"{PREFIX}.public.{table}"


def unchanged_by(placeholder: str) -> Callable[[Any], bool]:
    """What the connector writes for a value that did not change, in each type that can be one."""
    data = placeholder.encode()
    signed = [byte - 256 if byte > 127 else byte for byte in data]
    forms: list[Any] = [
        placeholder,
        data,
        [placeholder],
        [data],
        signed,
        json.dumps({placeholder: placeholder}).replace(" ", ""),
    ]
    return lambda value: value in forms


def _schema_id(data: bytes | None) -> int | None:
    """As landed (cdc/land/log_table.py)."""
    found = avro.frame(data)
    return found.schema_id if found and found.body and found.schema_id < 2**31 else None


def _message(record: dict[str, Any]) -> Message:
    return Message(
        topic=record["topic"],
        offset=record["offset"],
        key=_bytes(record["key"]),
        value=_bytes(record["value"]),
        headers=tuple((name, base64.b64decode(data)) for name, data in record["headers"]),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
