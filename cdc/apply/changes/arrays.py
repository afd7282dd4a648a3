"""Converts an array of the connector, element by element: Spark texts and their Python. Pure."""

import re
from typing import Any, Final

from cdc.apply.changes.casts import cast_to
from cdc.apply.changes.conversion import END, Of, no_form, same
from cdc.apply.changes.failures import any_of, lost, not_text
from cdc.apply.changes.scalars import kind_of, scalar_of
from cdc.events.schema import RowField
from cdc.events.values.lake_types import branches, canonical, lake_type
from cdc.events.values.sql_text import spark_string

_NESTED: Final = rf"^\[+(L[A-Za-z0-9_.$]+;|[BCDFIJSZ])@[0-9a-f]+{END}"
_IS_NESTED: Final = re.compile(_NESTED)
_NESTED_AS_NULL: Final = frozenset({"citext", "hstore"})
"""String types whose elements arrive as NULL in an array of arrays, as those of non-string types
do. Elements of other string types arrive as the name of a Java class (``_NESTED``)."""


def array(
    field: RowField,
    branch: Any,  # noqa: ANN401 - Avro is JSON
    raw: str,
    made: str,
    target: str,
) -> tuple[str, str | None, Of]:
    """Return the texts for value and failure of an array, and their Python."""
    element = field.pg.element
    items = branches(branch["items"])[0]
    if element is None or kind_of(items) == "array":
        return f"CAST(NULL AS {target})", lost(raw, made), no_form
    inner = target.removeprefix("array<").removesuffix(">")
    scalar = cast_to(scalar_of(items, element, "x", lake_type(element).spark), inner)
    named = kind_of(items) == "string" and canonical(element.name) not in _NESTED_AS_NULL
    nested = _nested_sql(raw, named=named)
    broken = not_text("x", inner)
    unclean = broken and f"exists({made}, x -> {broken})"
    of = _array_of(scalar.of, named=named)
    if scalar.sql == "x":
        return raw, any_of(nested, unclean), of
    nulls = "size(filter({}, x -> x IS NULL))"
    failed = f"({raw} IS NOT NULL AND {nulls.format(made)} <> {nulls.format(raw)})"
    some = failed if scalar.fallible else None
    return f"transform({raw}, x -> {scalar.sql})", any_of(nested, unclean, some), of


def _nested_sql(raw: str, *, named: bool) -> str:
    """Return whether it may be an array of arrays, of which the connector sends no elements."""
    one = f"coalesce(x RLIKE {spark_string(_NESTED)}, false)" if named else "x IS NULL"
    return f"(size({raw}) > 0 AND forall({raw}, x -> {one}))"


def _nested_of(items: list[Any], *, named: bool) -> bool:
    if not items:
        return False
    if named:
        return all(x is not None and _IS_NESTED.match(x) is not None for x in items)
    return all(x is None for x in items)


def _array_of(one: Of, *, named: bool) -> Of:
    def convert(items: list[Any]) -> list[Any] | None:
        if _nested_of(items, named=named):
            return None
        if one is same:
            return items
        made = [None if x is None else one(x) for x in items]
        is_whole = all((a is None) == (b is None) for a, b in zip(items, made, strict=True))
        return made if is_whole else None

    return convert
