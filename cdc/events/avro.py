"""Read the Confluent frame and decode Avro independently of Spark, for tests and quarantine."""

import io
import json
from dataclasses import dataclass
from typing import Any, Final, cast

import fastavro

from cdc.errors import CdcError, ErrorKind

MAGIC: Final = 0
HEADER: Final = 5
"""Bytes of the frame: a magic byte and four bytes with the writer's schema id."""
LONGEST: Final = 64 << 20
"""Bytes of a text or of bytes in a message: the connector sends no longer message."""
MOST_ITEMS: Final = LONGEST // 2
"""Items of an array: one that is not NULL takes two bytes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Holds the parts of a framed message: the writer's schema id and the Avro bytes."""

    schema_id: int
    body: bytes


def frame(data: bytes | None) -> Frame | None:
    """Return the parts of a framed message, or None if there is no message or no frame."""
    if data is None or len(data) < HEADER or data[0] != MAGIC:
        return None
    return Frame(int.from_bytes(data[1:HEADER]), data[HEADER:])


def decode(schema_json: str, body: bytes) -> dict[str, Any]:
    """Return the record in ``body``; raise BAD_EVENT if it is not one or bytes are left over."""
    reader = io.BytesIO(body)
    schema = fastavro.parse_schema(json.loads(schema_json))
    try:
        record = fastavro.schemaless_reader(reader, schema, None)
    except Exception as error:  # noqa: BLE001 - the decoder raises errors of any type
        raise _bad(type(error).__name__) from None
    if reader.read(1):
        raise _bad("bytes are left over")
    return cast("dict[str, Any]", record)


def encode(schema_json: str, schema_id: int, record: dict[str, Any]) -> bytes:
    """Return the record as a framed message, like those that the Avro converter writes."""
    writer = io.BytesIO()
    fastavro.schemaless_writer(writer, fastavro.parse_schema(json.loads(schema_json)), record)
    return bytes([MAGIC]) + schema_id.to_bytes(HEADER - 1) + writer.getvalue()


def _bad(detail: str) -> CdcError:
    return CdcError(
        ErrorKind.BAD_EVENT,
        "a message is not a record of its schema",
        detail=detail,
        remedy="look at it with wal2lake quarantine; once the cause is fixed, resnapshot the table",
    )
