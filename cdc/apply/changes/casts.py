"""Casts a converted scalar to the lake's type; null where it does not fit. Pure."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

from cdc.apply.changes import postgres_times
from cdc.apply.changes.conversion import Of, Scalar, no_form, same, then

_INTEGERS: Final = {"smallint": 15, "int": 31, "bigint": 63}
"""Bits of the largest value."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_BLANKS: Final = "".join(map(chr, range(33)))
"""What Spark passes over at both ends of a text that it casts to a decimal."""
BLANKS: Final = f"{_BLANKS}\x7f"
"""What it passes over where it casts a text to an integer."""
_DECIMAL: Final = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_DIGITS: Final = Context(prec=16_000, rounding=ROUND_HALF_UP)
"""Room for every digit before rounding: Postgres has at most 131,072, of which 38 may fit."""


def cast_to(scalar: Scalar, target: str) -> Scalar:
    """Return the value as the target type; null where it does not fit."""
    if scalar.spark == target:
        return scalar
    sql = f"try_cast({scalar.sql} AS {target})"
    return Scalar(sql, target, then(scalar.of, cast(scalar.spark, target)), fallible=True)


def cast(kind: str, target: str) -> Of:
    """Return Spark's ``try_cast`` from one type to another in Python.

    A cast that no column of the connector needs keeps no value: its events are refused.
    """
    if target in _INTEGERS and (kind in _INTEGERS or kind == "string"):
        read: Of = _whole if kind == "string" else same
        return then(read, partial(_within, limit=2 ** _INTEGERS[target]))
    if (decimal := _DECIMAL.fullmatch(target)) and (kind == "string" or _DECIMAL.fullmatch(kind)):
        number: Of = _number if kind == "string" else same
        precision, scale = map(int, decimal.groups())
        unit, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)
        return then(number, partial(_rounded, unit=unit, limit=limit))
    return _OTHERS.get((kind, target), no_form)


def _within(value: int, *, limit: int) -> int | None:
    return value if -limit <= value < limit else None


def _whole(text: str) -> int | None:
    plain = text.strip(BLANKS)
    return int(plain) if _WHOLE.fullmatch(plain) else None


def _number(text: str) -> Decimal | None:
    plain = text.strip(_BLANKS)
    return Decimal(plain) if _NUMBER.fullmatch(plain) else None


def _rounded(value: Decimal, *, unit: Decimal, limit: Decimal) -> Decimal | None:
    """Half up, as Spark does; a zero has no sign."""
    try:
        rounded = value.quantize(unit, context=_DIGITS)
    except InvalidOperation:
        return None
    return (rounded or abs(rounded)) if -limit < rounded < limit else None


def _words(value: Any) -> str:  # noqa: ANN401 - of the types below
    return str(value).lower()


def _text(value: bytes) -> str | None:
    """Bytes that are no text are refused wherever they become one."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


_OTHERS: Final[dict[tuple[str, str], Of]] = {
    ("float", "double"): same,
    ("binary", "string"): _text,
    ("timestamp_ntz", "string"): postgres_times.TIMESTAMP.of,
    **{(kind, "string"): _words for kind in ("boolean", "smallint", "int", "bigint")},
}
