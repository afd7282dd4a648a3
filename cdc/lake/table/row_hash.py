"""Digests whole rows of tables without a key: by a Spark text, with its Python beside it."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a time zone
_FIRST: Final = 719_163
"""The day 1970-01-01, counted as ``date.fromordinal`` does."""


def row_hash(schema: TableSchema) -> str:
    """Return SQL text of a digest that two rows share only if all their values are equal.

    The digested text holds each value with its column and length, but no nulls. So different rows
    have different texts, and a column added later does not change the digest of rows that are null
    in it.
    """
    parts = ", ".join(_hashed(column.name, column.type) for column in schema.columns)
    return f"sha2(concat({parts}), 256)"


def row_digest(schema: TableSchema) -> Callable[[Sequence[Any]], str]:
    """Return the function from a row's values to the same digest; not for ``has_floats``.

    Dates are days and timestamps microseconds since 1970.
    """
    texts = [(f"{len(c.name)}:{c.name}=", _text_of(c.type)) for c in schema.columns]

    def digest(values: Sequence[Any]) -> str:
        parts = []
        for (begin, text_of), value in zip(texts, values, strict=True):
            if value is not None:
                text = text_of(value)
                parts.append(f"{begin}{len(text)}:{text}")
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    return digest


def has_floats(schema: TableSchema) -> bool:
    """Return whether some digests need the text that Spark gives a float, which is Java's own."""
    return any("float" in c.type or "double" in c.type for c in schema.columns)


def _hashed(name: str, kind: str) -> str:
    text = _canonical(spark_name(name), kind)
    begin = spark_string(f"{len(name)}:{name}=")
    return f"IF({spark_name(name)} IS NULL, '', concat({begin}, length({text}), ':', {text}))"


def _canonical(value: str, kind: str) -> str:
    if kind.startswith("array<"):
        text = _canonical("e", kind.removeprefix("array<").removesuffix(">"))
        element = f"IF(e IS NULL, '-', concat(length({text}), ':', {text}))"
        return f"concat_ws(',', transform({value}, e -> {element}))"
    if kind == "binary":
        return f"hex({value})"
    if kind == "timestamp":
        return f"CAST(unix_micros({value}) AS string)"
    return value if kind == "string" else f"CAST({value} AS string)"


def _text_of(kind: str) -> Callable[[Any], str]:
    if kind.startswith("array<"):
        one = _text_of(kind.removeprefix("array<").removesuffix(">"))
        return lambda items: ",".join("-" if e is None else _measured(one(e)) for e in items)
    if kind.startswith("decimal"):
        return "{:f}".format
    return _TEXTS.get(kind, str)


def _measured(text: str) -> str:
    return f"{len(text)}:{text}"


def _micros(micros: int) -> str:
    stamp = _EPOCH + timedelta(microseconds=micros)
    text = stamp.isoformat(sep=" ")
    return text.rstrip("0") if stamp.microsecond else text


_TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "binary": lambda data: data.hex().upper(),
    "boolean": lambda value: "true" if value else "false",
    "date": lambda days: date.fromordinal(_FIRST + days).isoformat(),
    "timestamp_ntz": _micros,
}
