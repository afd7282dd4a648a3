"""Turns rows of the log in Arrow into events, and changes into rows of the table."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.apply.local.change import LogEvent
from cdc.apply.local.not_local import NotLocalError
from cdc.events.envelope import OLD_KEY
from cdc.events.schema import TableSchema

_DECIMAL: Final = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_TYPES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
REFUSED: Final = pa.schema([("offset", pa.int64()), ("reason", pa.string())])


def log_events(rows: pa.Table) -> list[LogEvent]:
    """Return one topic's rows of the log as events in the order of their offsets.

    Tombstones are left out.
    """
    rows = rows.filter(pc.is_valid(rows["value"])).sort_by("offset")
    moved = _moved(rows["headers"])
    columns = [rows[name].to_pylist() for name in LogEvent._fields[:-1]]
    halves = (place in moved for place in range(len(rows)))
    return list(map(LogEvent._make, zip(*columns, halves, strict=True)))


def _moved(headers: pa.ChunkedArray) -> Collection[int]:
    """Return the places of events that have the header of the second half of a changed key."""
    lists = headers.combine_chunks()
    flat = pc.list_flatten(lists)
    if not len(flat):
        return ()
    mine = pc.fill_null(pc.equal(pc.struct_field(flat, "key"), OLD_KEY), fill_value=False)
    places: list[int] = pc.list_parent_indices(lists).filter(mine).to_pylist()
    return frozenset(places)


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type of a lake type (Spark DDL text)."""
    if kind.startswith("array<"):
        return pa.list_(arrow_type(kind.removeprefix("array<").removesuffix(">")))
    decimal = _DECIMAL.fullmatch(kind)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES[kind]


def table_of(
    schema: TableSchema,
    rows: Sequence[Sequence[Any]],
    own: Mapping[str, pa.Array],
    names: Collection[str] | None = None,
) -> pa.Table:
    """Return rows as a table; ``own`` are further columns, ``names`` some of the schema's.

    Raises NotLocalError for a value that its type cannot represent: only broken bytes have one.
    """
    columns = {}
    for number, column in enumerate(schema.columns):
        if names is None or column.name in names:
            kind = arrow_type(column.type)
            try:
                columns[column.name] = pa.array([row[number] for row in rows], type=kind)
            except (pa.ArrowException, OverflowError, UnicodeError) as error:
                raise NotLocalError(f"column {column.name}: {error}") from None
    return pa.table(columns | dict(own))
