"""Statistics of a new data file: number of rows, and what readers skip files by.

They are written as Spark writes them (``StatisticsCollection``), so that every reader takes them
the same way. Where a smallest and largest value cannot be written so that all readers agree, both
are left out, which costs readers nothing but a file that they could have skipped.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

PREFIX: Final = 32
"""Characters of a string that are kept."""
_LAST: Final = "\U0010ffff"  # the last character there is
_MILLISECOND: Final = timedelta(milliseconds=1)


def statistics(rows: pa.Table, measured: Iterable[str]) -> str:
    """Return the statistics of a file with these rows as JSON.

    ``measured`` are the columns to have them, by their names in the file.
    """
    smallest, largest, nulls = {}, {}, {}
    for name in measured:
        column = rows.column(name)
        nulls[name] = str(column.null_count)
        if (bounds := _bounds(column)) is not None:
            smallest[name], largest[name] = bounds
    return _object(
        {
            "numRecords": str(rows.num_rows),
            "minValues": _object(smallest),
            "maxValues": _object(largest),
            "nullCount": _object(nulls),
            "tightBounds": "true",
        }
    )


def _object(members: Mapping[str, str]) -> str:
    """Return a JSON object of texts that are JSON already: no float comes near a decimal."""
    return "{" + ",".join(f"{_text(name)}:{text}" for name, text in members.items()) + "}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bounds(column: pa.ChunkedArray) -> tuple[str, str] | None:
    """Return the smallest and the largest value as JSON; None if they are not written."""
    write = _writer(column.type)
    if write is None or column.null_count == len(column):
        return None
    if types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return None  # readers differ in where NaN belongs
    found = pc.min_max(column)
    low = write(found["min"].as_py(), largest=False)
    high = write(found["max"].as_py(), largest=True)
    return None if low is None or high is None else (low, high)


class _Writer(Protocol):
    """Returns the JSON of a value, of the largest or the smallest; None if there is none."""

    def __call__(self, value: Any, /, *, largest: bool) -> str | None: ...  # noqa: ANN401


def _writer(of: pa.DataType) -> _Writer | None:
    found: Iterable[tuple[Callable[[pa.DataType], bool], _Writer]] = (
        (types.is_integer, _number),
        (types.is_floating, _float),
        (types.is_decimal, _decimal),
        (types.is_string, _string),
        (types.is_date, _date),
        (types.is_timestamp, _timestamp),
    )
    return next((write for matches, write in found if matches(of)), None)


def _number(value: int, *, largest: bool) -> str:  # noqa: ARG001 - as the others
    return str(value)


def _float(value: float, *, largest: bool) -> str | None:  # noqa: ARG001
    return repr(value) if isfinite(value) else None


def _decimal(value: Decimal, *, largest: bool) -> str:  # noqa: ARG001
    return format(value, "f")


def _string(value: str, *, largest: bool) -> str:
    """Cut the value; a cut largest value is made greater than all that begin like it."""
    if len(value) <= PREFIX:
        return _text(value)
    if not largest:
        return _text(value[:PREFIX])
    return _text(value if value[PREFIX] == _LAST else value[:PREFIX] + _LAST)


def _date(value: date, *, largest: bool) -> str:  # noqa: ARG001
    return _text(value.isoformat())


def _timestamp(value: datetime, *, largest: bool) -> str | None:
    """Cut the value to milliseconds, as Spark does, but a largest one upwards."""
    cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
    if largest and cut < value:
        try:
            cut += _MILLISECOND
        except OverflowError:
            return None
    text = cut.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return _text(text if value.tzinfo is None else f"{text}Z")
