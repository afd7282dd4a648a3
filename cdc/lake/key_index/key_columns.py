"""Bring the values of a key's columns into one form, whichever file or batch they come from."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.lake.key_index.refused import IndexRefusedError

INTEGERS: Final = frozenset({"smallint", "int", "bigint"})
_MICROSECONDS: Final = pa.timestamp("us", tz="UTC")
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Describes a column of a key.

    ``name`` is its name in a batch, ``physical`` that in Parquet (column mapping), ``type`` the
    lake's type as Spark DDL text.
    """

    name: str
    physical: str
    type: str


@dataclass(frozen=True, slots=True)
class _Form:
    """Names the one form for all values of a type, and the Arrow types that may be brought into it.

    A cast between other types may give two values one form: 01 and 1, read as numbers, are equal.
    """

    arrow: pa.DataType
    accepts: Callable[[pa.DataType], bool]


_FORMS: Final[dict[str, _Form]] = {
    "boolean": _Form(pa.bool_(), pa.types.is_boolean),
    **dict.fromkeys(INTEGERS, _Form(pa.int64(), pa.types.is_signed_integer)),
    "float": _Form(pa.float64(), pa.types.is_float32),
    "double": _Form(pa.float64(), pa.types.is_floating),
    "date": _Form(pa.date32(), pa.types.is_date32),
    # A file of INT96 has instants without a zone: they are in UTC.
    "timestamp": _Form(_MICROSECONDS, pa.types.is_timestamp),
    "timestamp_ntz": _Form(
        pa.timestamp("us"), lambda kind: pa.types.is_timestamp(kind) and kind.tz is None
    ),
    "string": _Form(
        pa.large_binary(), lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)
    ),
    "binary": _Form(
        pa.large_binary(), lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    ),
}


def refuse_types(key: Sequence[KeyColumn]) -> None:
    """Refuse a key of a type that cannot be indexed: an array, or one that is unknown here.

    Raises IndexRefusedError, also for a key without columns.
    """
    if not key:
        raise IndexRefusedError("the table has no key")
    for column in key:
        _form(column)


def in_one_form(column: KeyColumn, values: pa.Array) -> pa.Array:
    """Return the values of a key's column in the form of its type: text as bytes, floats as bits.

    Two values have one form exactly if the lake takes them for equal, as a MERGE does: 0 and -0
    are equal, and so are all NaNs. Raises IndexRefusedError for a NULL, for another type, and for
    a value beyond the lake's type.
    """
    form, values = _form(column), _plain(values)
    if values.null_count:
        raise IndexRefusedError(f"column {column.name} of the key holds a NULL")
    if not form.accepts(values.type):
        raise IndexRefusedError(
            f"column {column.name} of the key has values of {values.type}, not of {column.type}"
        )
    try:
        cast = values.cast(form.arrow)
    except pa.ArrowInvalid:
        raise IndexRefusedError(
            f"column {column.name} of the key has a value beyond {column.type}"
        ) from None
    return _bits(cast) if pa.types.is_floating(cast.type) else cast


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _bits(values: pa.Array) -> pa.Array:
    one_zero = pc.add(values, 0.0)  # -0 + 0 is 0
    return pc.if_else(pc.is_nan(values), math.nan, one_zero).view(pa.int64())


def _form(column: KeyColumn) -> _Form:
    if digits := _DECIMAL.fullmatch(column.type):
        wide = pa.decimal128(int(digits[1]), int(digits[2]))
        return _Form(wide, pa.types.is_decimal)
    if column.type not in _FORMS:
        raise IndexRefusedError(
            f"column {column.name} of the key has type {column.type}, which has no index"
        )
    return _FORMS[column.type]
