"""Makes a small micro-batch's log rows in memory, as ``cdc.land.log_table`` does by Spark."""

from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.land.landing import Landing, TopicSpan
from cdc.land.log_table import FRAME_BYTES

_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
_INSTANT: Final = pa.timestamp("us", "UTC")
LOG_SCHEMA: Final = pa.schema(
    [
        ("landing", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _INSTANT),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.field("element", _HEADER))),
        ("key_schema_id", pa.int32()),
        ("value_schema_id", pa.int32()),
        ("landed_at", _INSTANT),
    ]
)
"""The log's columns (``LOG_COLUMNS``) as Arrow has them."""
DELTA_TYPES: Final[dict[str, Any]] = {
    "landing": "long",
    "topic": "string",
    "partition": "integer",
    "offset": "long",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": {
        "type": "array",
        "elementType": {
            "type": "struct",
            "fields": [
                {"name": "key", "type": "string", "nullable": True, "metadata": {}},
                {"name": "value", "type": "binary", "nullable": True, "metadata": {}},
            ],
        },
        "containsNull": True,
    },
    "key_schema_id": "integer",
    "value_schema_id": "integer",
    "landed_at": "timestamp",
}
"""The same as Delta has them."""


def arrow_rows(events: pa.Table, landing: int, landed_at: datetime) -> pa.Table:
    """Return rows of the log, by topic and offset, from rows of Spark's Kafka source."""
    ordered = events.combine_chunks().sort_by([("topic", "ascending"), ("offset", "ascending")])
    own = {
        "landing": pa.repeat(pa.scalar(landing, pa.int64()), len(ordered)),
        "key_schema_id": schema_ids(ordered["key"]),
        "value_schema_id": schema_ids(ordered["value"]),
        "landed_at": pa.repeat(pa.scalar(landed_at, _INSTANT), len(ordered)),
    }
    columns = [
        own[field.name] if field.name in own else ordered[field.name].cast(field.type)
        for field in LOG_SCHEMA
    ]
    return pa.table(columns, schema=LOG_SCHEMA)


def schema_ids(messages: pa.ChunkedArray) -> pa.Array:
    """Return the writer schemas' ids in Confluent frames; null for bytes that are not a frame.

    Few distinct heads stand before many messages, so each is read once.
    """
    is_long = pc.greater(pc.binary_length(messages), FRAME_BYTES)
    heads = pc.if_else(is_long, pc.binary_slice(messages, 0, FRAME_BYTES), None)
    encoded = heads.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    ids = [_schema_id(head) for head in encoded.dictionary.to_pylist()]
    return pa.array(ids, pa.int32()).take(encoded.indices)


def _schema_id(head: bytes) -> int | None:
    number = int.from_bytes(head[1:])
    # Registry ids are positive 32-bit integers; a larger number is garbage.
    return number if head[0] == 0 and number < 2**31 else None


def arrow_landing(rows: pa.Table) -> Landing:
    """Return the landing of these rows of the log, at least one, with the rows themselves."""
    grouped = rows.group_by("topic").aggregate(
        [("offset", "max"), ("offset", "count"), ("value_schema_id", "distinct")]
    )
    topics = {
        row["topic"]: TopicSpan(
            last=row["offset_max"],
            count=row["offset_count"],
            schema_ids=frozenset(i for i in row["value_schema_id_distinct"] if i is not None),
        )
        for row in grouped.to_pylist()
    }
    return Landing(number=rows["landing"][0].as_py(), topics=topics, events=rows)
