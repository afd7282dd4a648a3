"""SQL text that converts a column's value from Avro to the lake.

There are three texts per column, over a field of the decoded event: the value; whether the value
failed (it is not null, but has no exact form in the lake); whether it is only marked as unchanged.
Pure: building the text does not need Spark.
"""

import hashlib
import uuid
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.apply.changes.scalars import (
    PRIMITIVES,
    as_postgres_text,
    cast_to,
    kind_of,
    scalar_of,
)
from cdc.events.schema import Column, RowField, fits
from cdc.events.values.lake_types import (
    branches,
    can_be_text,
    canonical,
    lake_type,
)
from cdc.events.values.sql_text import spark_string

_NESTED: Final = r"^\[+(L[A-Za-z0-9_.$]+;|[BCDFIJSZ])@[0-9a-f]+$"
_NESTED_AS_NULL: Final = frozenset({"citext", "hstore"})
"""String types whose elements arrive as NULL in an array of arrays, as those of non-string types
do. Elements of other string types arrive as the name of a Java class (``_NESTED``)."""

_LIMITS: Final = {
    "decimal": "NaN, infinity, or too many digits",
    "date": "infinity, or a year outside 1 to 9999",
    "timestamp": "infinity, or a year outside 1 to 9999",
    "array": "several dimensions, only NULL elements, or an element that does not fit",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """SQL texts for one column; a condition is None if it is never true.

    ``limit`` describes the values that the lake's type cannot represent.
    """

    sql: str
    failed: str | None = None
    unchanged: str | None = None
    limit: str = ""


def value(field: RowField, raw: str, made: str, column: Column, placeholder: str) -> Value:
    """Return the texts for one column, from the field ``raw`` to the lake's ``column``.

    ``made`` names the column that will hold the value; the condition for a failed value refers to
    it. Without a placeholder no value is marked as unchanged.
    """
    branch, target = branches(field.type)[0], column.type
    stored = lake_type(field.pg)
    as_text = column.as_text and can_be_text(field.pg)
    if stored.refused or not (as_text or fits(stored.spark, target)):
        return Value(sql=f"CAST(NULL AS {target})", failed=_lost(raw, made))
    if kind_of(branch) == "array":
        sql, failed = _array(field, branch, raw, made, target)
    else:
        convert = as_postgres_text if as_text else scalar_of
        scalar = cast_to(convert(branch, field.pg, raw, stored.spark), target)
        lost = _lost(raw, made) if scalar.fallible else None
        sql, failed = scalar.sql, _any(lost, _not_text(made, target))
    unchanged = unchanged_when(branch, raw, placeholder) if placeholder else None
    return _or_unchanged(Value(sql=sql, failed=failed, limit=limit(target)), unchanged)


def _or_unchanged(texts: Value, unchanged: str | None) -> Value:
    if unchanged is None:
        return texts
    return replace(
        texts,
        sql=f"IF({unchanged}, NULL, {texts.sql})",
        failed=texts.failed and f"(({texts.failed}) AND NOT ({unchanged}))",
        unchanged=unchanged,
    )


def _lost(raw: str, made: str) -> str:
    return f"({raw} IS NOT NULL AND {made} IS NULL)"


def _any(*conditions: str | None) -> str | None:
    """Return whether any condition is true; an unknown one counts as false."""
    given = [f"coalesce({condition}, false)" for condition in conditions if condition]
    return " OR ".join(given) or None


def limit(target: str) -> str:
    """Return the values that a lake type cannot represent, in words; empty if it has no limit."""
    return next((text for kind, text in _LIMITS.items() if target.startswith(kind)), "")


def unchanged_when(
    branch: Any,  # noqa: ANN401 - Avro is JSON
    raw: str,
    placeholder: str,
) -> str | None:
    """Return the condition that the value is the connector's placeholder; None if it has none.

    The form of the placeholder follows the column's type: it is the text itself (for hstore, a pair
    of it), its bytes, or an array that holds one of those, its bytes as numbers, or a UUID derived
    from it.
    """
    kind = kind_of(branch)
    pair = f'{{"{placeholder}":"{placeholder}"}}'
    if kind == "string":
        return f"{raw} IN ({spark_string(placeholder)}, {spark_string(pair)})"
    if kind == "bytes":
        return f"{raw} = {_binary(placeholder)}"
    return (
        _unchanged_array(kind_of(branches(branch["items"])[0]), raw, placeholder)
        if kind == "array"
        else None
    )


def _unchanged_array(item: str, raw: str, placeholder: str) -> str | None:
    data = placeholder.encode()
    if item == "string":
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        derived = str(uuid.UUID(bytes=digest, version=3))
        return f"{raw} IN (array({spark_string(placeholder)}), array({spark_string(derived)}))"
    if item == "bytes":
        return f"{raw} = array({_binary(placeholder)})"
    if item in {"int", "long"}:
        numbers = ", ".join(str(int.from_bytes([byte], signed=True)) for byte in data)
        return f"{raw} = CAST(array({numbers}) AS array<{PRIMITIVES[item]}>)"
    return None


def _binary(text: str) -> str:
    return f"X'{text.encode().hex()}'"


def _array(
    field: RowField,
    branch: Any,  # noqa: ANN401 - Avro is JSON
    raw: str,
    made: str,
    target: str,
) -> tuple[str, str | None]:
    element = field.pg.element
    items = branches(branch["items"])[0]
    if element is None or kind_of(items) == "array":
        return f"CAST(NULL AS {target})", _lost(raw, made)
    inner = target.removeprefix("array<").removesuffix(">")
    scalar = cast_to(scalar_of(items, element, "x", lake_type(element).spark), inner)
    nested = _nested(items, canonical(element.name), raw)
    broken = _not_text("x", inner)
    unclean = broken and f"exists({made}, x -> {broken})"
    if scalar.sql == "x":
        return raw, _any(nested, unclean)
    nulls = "size(filter({}, x -> x IS NULL))"
    failed = f"({raw} IS NOT NULL AND {nulls.format(made)} <> {nulls.format(raw)})"
    lost = failed if scalar.fallible else None
    return f"transform({raw}, x -> {scalar.sql})", _any(nested, unclean, lost)


def _nested(items: Any, element: str, raw: str) -> str:  # noqa: ANN401
    """Whether it may be an array of arrays, of which the connector sends no elements."""
    named = kind_of(items) == "string" and element not in _NESTED_AS_NULL
    one = f"coalesce(x RLIKE {spark_string(_NESTED)}, false)" if named else "x IS NULL"
    return f"(size({raw}) > 0 AND forall({raw}, x -> {one}))"


def _not_text(made: str, target: str) -> str | None:
    """Spark's decoder accepts any bytes as text, but readers of the lake would fail at them."""
    return f"NOT is_valid_utf8({made})" if target == "string" else None
