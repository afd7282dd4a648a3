"""Values of columns in Arrow as plain Python has them."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def plain_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column's values as cdc/apply/changes/conversion.py has them: dates are days."""
    values: list[Any] = pc.cast(column, _plain_type(column.type)).to_pylist()
    return values


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind
