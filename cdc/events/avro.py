"""The Confluent frame and an independent decoder: tests and quarantine read bytes with it."""

import io
import json
from dataclasses import dataclass
from typing import Any, Final, cast

import fastavro

from cdc.errors import CdcError, ErrorKind

MAGIC: Final = 0
HEADER: Final = 5
"""One magic byte and the four bytes of the writer's schema id."""


@dataclass(frozen=True, slots=True)
class Frame:
    schema_id: int
    body: bytes


def frame(data: bytes | None) -> Frame | None:
    """The parts of a framed message; None for no message or one without a frame."""
    if data is None or len(data) < HEADER or data[0] != MAGIC:
        return None
    return Frame(int.from_bytes(data[1:HEADER]), data[HEADER:])


def decode(schema_json: str, body: bytes) -> dict[str, Any]:
    """The record in ``body``; raises BAD_EVENT when it is not one, or has bytes left over."""
    reader = io.BytesIO(body)
    schema = fastavro.parse_schema(json.loads(schema_json))
    try:
        record = fastavro.schemaless_reader(reader, schema, None)
    except Exception as error:  # noqa: BLE001 - the decoder raises whatever it stumbles over
        raise _bad(type(error).__name__) from None
    if reader.read(1):
        raise _bad("bytes are left over")
    return cast("dict[str, Any]", record)


def encode(schema_json: str, schema_id: int, record: dict[str, Any]) -> bytes:
    """A framed message, as the converter writes it."""
    writer = io.BytesIO()
    fastavro.schemaless_writer(writer, fastavro.parse_schema(json.loads(schema_json)), record)
    return bytes([MAGIC]) + schema_id.to_bytes(HEADER - 1) + writer.getvalue()


def _bad(detail: str) -> CdcError:
    return CdcError(
        ErrorKind.BAD_EVENT,
        "a message is not a record of its schema",
        detail=detail,
        remedy="look at it in the quarantine; resnapshot the table when its cause is gone",
    )
