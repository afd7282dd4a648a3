"""Define the types of a state's columns, and which values fit them exactly."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Final

_DECIMAL: Final = re.compile(r"(?:numeric|decimal) ?\( ?(\d{1,2}) ?, ?(\d{1,2}) ?\)")
_MOST_DIGITS: Final = 38
_EXACT: Final = Context(prec=100, traps=[Inexact, InvalidOperation])
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")
Value = int | Decimal | float | str | bool | date | None
TYPES: Final = (
    "bigint, integer, numeric(p,s), double precision, text, boolean, date, timestamp, timestamptz"
)


class UnfitError(Exception):
    """Says why a column cannot hold a value exactly; the text does not contain the value."""


@dataclass(frozen=True, slots=True)
class Type:
    """Names a type of Postgres; of a numeric also how many digits it has, and behind the point."""

    name: str  # without digits
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.precision},{self.scale})" if self.precision else self.name

    @property
    def duckdb(self) -> str:
        """Return it in DuckDB's words."""
        if self.precision:
            return f"DECIMAL({self.precision},{self.scale})"
        return _DUCKDB[self.name]

    def fitted(self, value: object) -> Value:
        """Return the value as the lake holds it; raises UnfitError if it cannot hold it exactly."""
        return None if value is None else _FITTED[self.name](self, value)


@dataclass(frozen=True, slots=True)
class Column:
    """Names a column of the state, and its type."""

    name: str
    type: Type


def type_of(text: str) -> Type | None:
    """Return the type that a text names; None if a state cannot have it.

    The lake's own names ``string`` and ``decimal(p,s)`` are taken too.
    """
    plain = " ".join(text.lower().split())
    found = _DECIMAL.fullmatch(plain)
    if found is None:
        name = "text" if plain == "string" else plain
        return Type(name) if name in _DUCKDB else None
    precision, scale = int(found[1]), int(found[2])
    fits = 1 <= precision <= _MOST_DIGITS and scale <= precision
    return Type("numeric", precision, scale) if fits else None


def _whole(bits: int) -> Callable[[Type, object], int]:
    def fitted(kind: Type, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _other(kind, value)
        if not -(2**bits) <= value < 2**bits:
            raise UnfitError(f"a number is out of the range of {kind}")
        return int(value)

    return fitted


def _numeric(kind: Type, value: object) -> Decimal:
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        raise _other(kind, value)
    number = Decimal(value)
    if not number.is_finite():
        raise UnfitError(f"{kind} has no NaN and no infinity")
    if number and number.adjusted() >= kind.precision - kind.scale:
        raise UnfitError(f"a number is out of the range of {kind}")
    try:
        exact = number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except DecimalException:
        raise UnfitError(f"a number has more digits after the point than {kind}") from None
    return exact or abs(exact)  # there is no negative zero


def _double(kind: Type, value: object) -> float:
    if not isinstance(value, float):
        raise _other(kind, value)
    return float(value)


def _text(kind: Type, value: object) -> str:
    if not isinstance(value, str):
        raise _other(kind, value)
    if _NO_TEXT.search(value):
        raise UnfitError("a text has a zero byte or half a character")
    return str.__str__(value)  # of an enumeration too, the text itself


def _boolean(kind: Type, value: object) -> bool:
    if not isinstance(value, bool):
        raise _other(kind, value)
    return value


def _date(kind: Type, value: object) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _other(kind, value)
    return value


def _moment(kind: Type, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise _other(kind, value)
    has_zone = value.utcoffset() is not None
    if kind.name == "timestamp":
        if has_zone:
            raise UnfitError("a timestamp has a time zone: use timestamptz")
        return value.replace(fold=0)
    if not has_zone:
        raise UnfitError("a timestamptz has no time zone: use timestamp")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise UnfitError("a time is out of the range of timestamptz") from None


def _other(kind: Type, value: object) -> UnfitError:
    name = type(value).__name__
    return UnfitError(f"a value of Python's {name} is no {kind}")


_FITTED: Final[dict[str, Callable[[Type, object], Value]]] = {
    "bigint": _whole(63),
    "integer": _whole(31),
    "numeric": _numeric,
    "double precision": _double,
    "text": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _moment,
    "timestamptz": _moment,
}
_DUCKDB: Final = {
    "bigint": "BIGINT",
    "integer": "INTEGER",
    "double precision": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}
