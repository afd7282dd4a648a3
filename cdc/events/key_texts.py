"""A key's value as the text that Postgres writes it with, from the connector's form of it.

Only for types whose text is certain: what is not is None, and whoever asks must do without.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from cdc.events.schema import RowField
from cdc.events.values.lake_types import branches, canonical
from cdc.events.values.pg_types import NUMBER_WORDS, TYPES

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000_000
_AS_THEY_COME: Final = frozenset(
    {"text", "varchar", "bpchar", "name", "uuid", "inet", "cidr", "macaddr", "macaddr8"}
)


def key_text(field: RowField, value: object, declared: str | None) -> str | None:
    """The text of a value of the key's ``field``; ``declared`` is the column's type, where known.

    Times are in UTC and in ISO style; years outside 1 to 9999 have no text here.
    """
    match value:
        case bool():
            return _of_bit(value, declared)
        case int():
            return _of_integer(_name(field), value)
        case float():
            return _of_float(value)
        case bytes():
            return f"\\x{value.hex()}" if _name(field) == "" else None
        case str():
            return _of_text(_name(field), value, declared)
    return None


def readable(field: RowField, value: object, declared: str | None) -> Any:  # noqa: ANN401 - JSON
    """For a person: numbers as they are, all else as text, where there is one."""
    if isinstance(value, bool) or (isinstance(value, int) and _name(field) == ""):
        return value
    text = key_text(field, value, declared)
    if text is not None or value is None:
        return text
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _name(field: RowField) -> str:
    """Of the connector's logical type; empty for a plain one."""
    kind = branches(field.type)[0]
    return str(kind.get("connect.name", "")) if isinstance(kind, dict) else ""


def _of_integer(name: str, value: int) -> str | None:
    match name.removeprefix("io.debezium.time."):
        case "":
            return str(value)
        case "Date":
            return _date(value)
        case "Timestamp":
            return _timestamp(value * 1000)
        case "MicroTimestamp":
            return _timestamp(value)
        case "MicroTime":
            return _time(value)
    return None


def _of_bit(value: bool, declared: str | None) -> str | None:
    """The connector has one form for a boolean and a ``bit(1)``."""
    texts = {"bool": ("false", "true"), "bit": ("0", "1")}.get(canonical(declared or ""))
    return texts[value] if texts else None


def _of_float(value: float) -> str:
    text = repr(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _of_text(name: str, value: str, declared: str | None) -> str | None:
    if name == "io.debezium.time.ZonedTimestamp":
        return _instant(value)
    if name.startswith("io.debezium.time."):
        return None
    if declared is None:  # a text, or a number's word: nothing says which
        return None if value in NUMBER_WORDS else value
    kind = canonical(declared)
    if kind == "numeric":
        return NUMBER_WORDS.get(value, value)
    # A type that is none of Postgres's own is an enum, or a domain over a text.
    return value if kind in _AS_THEY_COME or kind not in TYPES else None


def _date(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _timestamp(micros: int) -> str | None:
    try:
        found = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return f"{found:%Y-%m-%d}".zfill(10) + " " + _time(micros % _DAY)


def _instant(text: str) -> str | None:
    """From ISO 8601 in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    micros = (found - _EPOCH) // timedelta(microseconds=1) if found.tzinfo else None
    made = None if micros is None else _timestamp(micros)
    return None if made is None else f"{made}+00"


def _time(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{fraction:06}".rstrip("0").rstrip(".") if fraction else clock
