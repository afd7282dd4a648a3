"""Makes rows of records read from Kafka, as Spark's Kafka source has them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Message

from cdc.kafka.range_reader import RangeReader
from cdc.land.arrow_rows import LOG_SCHEMA
from cdc.land.small_batches import MOST_BYTES

_MILLISECONDS: Final = pa.timestamp("ms", "UTC")


def read_rows(reader: RangeReader, ranges: Mapping[str, range]) -> pa.Table | None:
    """Return the committed records of ranges of offsets, by topic; None if only Spark reads them.

    Spark takes what is large, what Kafka does not give, and names of headers that are not UTF-8.
    """
    records = reader.read(ranges, MOST_BYTES)
    try:
        return None if records is None else kafka_rows(records)
    except UnicodeDecodeError:
        return None


def kafka_rows(records: Sequence[Message]) -> pa.Table:
    """Return the columns of the log that come from Kafka, a row for each record.

    Raises UnicodeDecodeError for the name of a header that is not UTF-8.
    """
    columns: dict[str, list[Any]] = {
        "topic": [record.topic() for record in records],
        "partition": [record.partition() for record in records],
        "offset": [record.offset() for record in records],
        "key": [record.key() for record in records],
        "value": [record.value() for record in records],
        "headers": [_headers(record) for record in records],
    }
    arrays = {name: pa.array(values, _type(name)) for name, values in columns.items()}
    times = pa.array([record.timestamp()[1] for record in records], _MILLISECONDS)
    arrays["timestamp"] = times.cast(_type("timestamp"))
    return pa.table(arrays)


def _headers(record: Message) -> list[dict[str, Any]] | None:
    headers: Any = record.headers()  # pairs, of which the client's types say too much
    return [{"key": name, "value": value} for name, value in headers] if headers else None


def _type(column: str) -> pa.DataType:
    return LOG_SCHEMA.field(column).type
