"""Converts a column's value from Avro to the lake: Spark texts, and the same in Python.

There are three texts per column, over a field of the decoded event: the value; whether the value
failed (it is not null, but has no exact form in the lake); whether it is only marked as unchanged.
Pure: building the text does not need Spark.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.apply.changes.arrays import array
from cdc.apply.changes.casts import cast_to
from cdc.apply.changes.conversion import Of, no_form
from cdc.apply.changes.failures import any_of, lost, not_text
from cdc.apply.changes.scalars import as_postgres_text, kind_of, scalar_of
from cdc.apply.changes.unchanged import Unchanged, unchanged_when
from cdc.events.schema import Column, RowField, fits
from cdc.events.values.lake_types import branches, can_be_text, lake_type

_LIMITS: Final = {
    "decimal": "NaN, infinity, or too many digits",
    "date": "infinity, or a year outside 1 to 9999",
    "timestamp": "infinity, or a year outside 1 to 9999",
    "array": "several dimensions, only NULL elements, or an element that does not fit",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """Holds one column's SQL texts, and their Python; a condition is None if it is never true.

    ``limit`` describes the values that the lake's type cannot represent. In Python ``of`` converts
    a value that is not None, to None where it failed; ``forms`` are the values that only mark it
    as unchanged.
    """

    sql: str
    of: Of
    failed: str | None = None
    unchanged: str | None = None
    forms: tuple[Any, ...] = ()
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
        return Value(sql=f"CAST(NULL AS {target})", of=no_form, failed=lost(raw, made))
    if kind_of(branch) == "array":
        sql, failed, of = array(field, branch, raw, made, target)
    else:
        convert = as_postgres_text if as_text else scalar_of
        scalar = cast_to(convert(branch, field.pg, raw, stored.spark), target)
        missing = lost(raw, made) if scalar.fallible else None
        sql, of = scalar.sql, scalar.of
        failed = any_of(missing, not_text(made, target))
    unchanged = unchanged_when(branch, raw, placeholder) if placeholder else None
    return _or_unchanged(Value(sql=sql, of=of, failed=failed, limit=limit(target)), unchanged)


def _or_unchanged(texts: Value, unchanged: Unchanged | None) -> Value:
    if unchanged is None:
        return texts
    return replace(
        texts,
        sql=f"IF({unchanged.sql}, NULL, {texts.sql})",
        failed=texts.failed and f"(({texts.failed}) AND NOT ({unchanged.sql}))",
        unchanged=unchanged.sql,
        forms=unchanged.forms,
    )


def limit(target: str) -> str:
    """Return the values that a lake type cannot represent, in words; empty if it has no limit."""
    return next((text for kind, text in _LIMITS.items() if target.startswith(kind)), "")
