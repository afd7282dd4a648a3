"""Makes a data file of new rows: Parquet with the physical names and field ids of the table."""

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from cdc.lake.commit.protocol import DECIMAL, SCALARS
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.statistics import statistics
from cdc.lake.commit.table_metadata import Metadata, StoredColumn
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import KEY_PROPERTY, MEASURED_PROPERTY

_SCALARS: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
OPTIONS: Final[dict[str, Any]] = {
    "compression": "snappy",
    "store_decimal_as_integer": True,  # as Spark does
    "store_schema": False,  # Arrow's own description would only repeat it
}
"""How a data file is written."""
assert _SCALARS.keys() == SCALARS  # noqa: S101 - what is allowed can be written


def arrow_schema(metadata: Metadata) -> pa.Schema:
    """Return the schema that rows for the table must have: the table's columns in order."""
    return pa.schema(
        [pa.field(column.name, arrow_type(column.type)) for column in metadata.columns]
    )


def stored_schema(metadata: Metadata) -> pa.Schema:
    """Return the schema of the rows in a data file: physical names and field ids."""
    return pa.schema(list(map(_field, metadata.columns)))


def arrow_type(of: str | Mapping[str, Any]) -> pa.DataType:
    """Return the Arrow type of a Delta type; raises KeyError unless it is a scalar or an array."""
    if not isinstance(of, str):
        element = pa.field("element", arrow_type(of["elementType"]), nullable=of["containsNull"])
        return pa.list_(element)
    if (digits := DECIMAL.fullmatch(of)) is not None:
        return pa.decimal128(int(digits[1]), int(digits[2]))
    return _SCALARS[of]


def data_file(
    rows: pa.Table, metadata: Metadata, uuid: UUID, millis: int
) -> tuple[bytes, LiveFile]:
    """Return the bytes of a data file with these rows, and how the log will have it.

    ``millis`` is now, in milliseconds since 1970. Raises ValueError unless the rows have exactly
    the schema ``arrow_schema(metadata)``: nothing is converted here.
    """
    schema = checked_schema(rows.schema, metadata)
    return stored_file(pa.table(rows.columns, schema=schema), metadata, uuid, millis)


def stored_file(
    stored: pa.Table, metadata: Metadata, uuid: UUID, millis: int
) -> tuple[bytes, LiveFile]:
    """Return the same for rows that have the schema ``stored_schema(metadata)`` already."""
    content = _parquet(stored)
    file = LiveFile(
        path=f"part-00000-{uuid}.c000.snappy.parquet",
        size=len(content),
        modified=millis,
        stats=statistics(stored, [column.physical for column in measured(metadata)]),
    )
    return content, file


def checked_schema(given: pa.Schema, metadata: Metadata) -> pa.Schema:
    """Return the schema in which rows of the schema ``given`` are in a data file.

    Raises ValueError unless that is exactly ``arrow_schema(metadata)``.
    """
    wanted = arrow_schema(metadata)
    if not given.equals(wanted):
        raise ValueError(f"rows of a table have other columns than it: {_first(given, wanted)}")
    return stored_schema(metadata)


def measured(metadata: Metadata) -> list[StoredColumn]:
    """Return the columns that get statistics: those by which rows are looked up."""
    listed = (metadata.properties.get(n, "[]") for n in (KEY_PROPERTY, MEASURED_PROPERTY))
    names = {OFFSET, ROW_HASH, COPY}.union(*map(json.loads, listed))
    return [column for column in metadata.columns if column.name in names]


def _field(column: StoredColumn) -> pa.Field:
    field_id = {"PARQUET:field_id": str(column.field_id)}
    return pa.field(column.physical, arrow_type(column.type), metadata=field_id)


def _first(given: pa.Schema, wanted: pa.Schema) -> str:
    """Return the first difference between the schemas."""
    if given.names != wanted.names:
        return f"{given.names} instead of {wanted.names}"
    pairs = zip(given, wanted, strict=True)
    return next((f"{ours} instead of {theirs}" for ours, theirs in pairs if ours != theirs), "")


def _parquet(stored: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(stored, sink, **OPTIONS)
    content: bytes = sink.getvalue().to_pybytes()
    return content
