"""SQL text that converts a column's value from Avro to the lake.

There are three texts per column, over a field of the decoded event: the value; whether the value
failed (it is not null, but has no exact form in the lake); whether it is only marked as unchanged.
Pure: building the text does not need Spark.
"""

import hashlib
import uuid
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.apply.changes import postgres_text
from cdc.apply.changes.intervals import interval
from cdc.events.schema import Column, RowField, fits
from cdc.events.values.lake_types import (
    PgType,
    branches,
    can_be_text,
    canonical,
    has_whole_scale,
    lake_type,
)
from cdc.events.values.pg_types import TYPES
from cdc.events.values.sql_text import spark_string

FIRST_DAY: Final = -719_162  # 0001-01-01, the first day on which all Parquet readers agree
LAST_DAY: Final = 2_932_896  # 9999-12-31
FIRST_MICRO: Final = FIRST_DAY * 86_400_000_000
LAST_MICRO: Final = (LAST_DAY + 1) * 86_400_000_000 - 1
_EPOCH: Final = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_MICRO: Final = "INTERVAL '0 00:00:00.000001' DAY TO SECOND"
_FIRST_INSTANT: Final = "TIMESTAMP'0001-01-01 00:00:00Z'"
_LAST_INSTANT: Final = "TIMESTAMP'9999-12-31 23:59:59.999999Z'"

_PRIMITIVES: Final[dict[str, str]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
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


@dataclass(frozen=True, slots=True)
class _Scalar:
    sql: str
    spark: str  # type of ``sql``
    fallible: bool = False


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
    if _kind(branch) == "array":
        sql, failed = _array(field, branch, raw, made, target)
    else:
        convert = _as_text if as_text else _scalar
        scalar = _to(convert(branch, field.pg, raw, stored.spark), target)
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
    """Whether any condition is true; an unknown one counts as false."""
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
    kind = _kind(branch)
    pair = f'{{"{placeholder}":"{placeholder}"}}'
    if kind == "string":
        return f"{raw} IN ({spark_string(placeholder)}, {spark_string(pair)})"
    if kind == "bytes":
        return f"{raw} = {_binary(placeholder)}"
    return (
        _unchanged_array(_kind(branches(branch["items"])[0]), raw, placeholder)
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
        return f"{raw} = CAST(array({numbers}) AS array<{_PRIMITIVES[item]}>)"
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
    if element is None or _kind(items) == "array":
        return f"CAST(NULL AS {target})", _lost(raw, made)
    inner = target.removeprefix("array<").removesuffix(">")
    scalar = _to(_scalar(items, element, "x", lake_type(element).spark), inner)
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
    named = _kind(items) == "string" and element not in _NESTED_AS_NULL
    one = f"coalesce(x RLIKE {spark_string(_NESTED)}, false)" if named else "x IS NULL"
    return f"(size({raw}) > 0 AND forall({raw}, x -> {one}))"


def _not_text(made: str, target: str) -> str | None:
    """Spark's decoder accepts any bytes as text, but readers of the lake would fail at them."""
    return f"NOT is_valid_utf8({made})" if target == "string" else None


def _to(scalar: _Scalar, target: str) -> _Scalar:
    if scalar.spark == target:
        return scalar
    return _Scalar(f"try_cast({scalar.sql} AS {target})", target, fallible=True)


def _as_text(branch: Any, pg: PgType, raw: str, stored: str) -> _Scalar:  # noqa: ANN401
    """Postgres's own text of a value, for a type of which the lake's type would refuse values."""
    text_of = _TEXTS.get(_logical(branch))
    if text_of is not None:
        return _Scalar(text_of(raw), "string", fallible=True)
    return _scalar(branch, pg, raw, "string" if canonical(pg.name) == "numeric" else stored)


def _scalar(branch: Any, pg: PgType, raw: str, stored: str) -> _Scalar:  # noqa: ANN401
    logical, kind, name = _logical(branch), _kind(branch), canonical(pg.name)
    if logical in _TEMPORAL:
        return _TEMPORAL[logical](raw)
    if name == "bit":
        return _Scalar(_bits(kind, raw, pg.length or 1), "string")
    if kind == "string":
        return _to(_string(name, raw, pg, stored, logical), stored)
    if kind == "bytes" and stored == "string":
        return _Scalar(f"CAST({raw} AS string)", "string")
    return _to(_Scalar(raw, _PRIMITIVES.get(kind, "?")), stored)


def _string(name: str, raw: str, pg: PgType, stored: str, logical: str) -> _Scalar:
    if name == "numeric":
        sql = postgres_text.number(raw, whole=has_whole_scale(pg))
        return _Scalar(sql, "string") if stored == "string" else _to(_Scalar(sql, "string"), stored)
    if name == "interval":
        return _Scalar(interval(raw), "string", fallible=True)
    if name not in TYPES and not logical:
        # Perhaps a domain over numeric: then the text may be the connector's word for NaN.
        plain = postgres_text.number(raw, whole=has_whole_scale(pg))
        return _Scalar(
            f"IF({postgres_text.special_number(raw)}, NULL, {plain})", "string", fallible=True
        )
    return _Scalar(raw, "string")


def _bits(kind: str, raw: str, length: int) -> str:
    if kind == "boolean":
        return f"IF({raw} IS NULL, NULL, IF({raw}, '1', '0'))"
    return postgres_text.bits(raw, length)


def _logical(branch: Any) -> str:  # noqa: ANN401
    return str(branch.get("connect.name", "")) if isinstance(branch, dict) else ""


def _kind(branch: Any) -> str:  # noqa: ANN401
    if isinstance(branch, dict):
        return _kind(branch["type"])
    return str(branch)


def _date(raw: str) -> _Scalar:
    inside = f"{raw} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
    return _Scalar(f"IF({inside}, date_from_unix_date({raw}), NULL)", "date", fallible=True)


def _micro_timestamp(raw: str) -> _Scalar:
    inside = f"{raw} BETWEEN {FIRST_MICRO} AND {LAST_MICRO}"
    return _Scalar(f"IF({inside}, {_EPOCH} + {_MICRO} * {raw}, NULL)", "timestamp_ntz", True)  # noqa: FBT003


def _milli_timestamp(raw: str) -> _Scalar:
    inside = f"{raw} BETWEEN {FIRST_MICRO // 1000} AND {LAST_MICRO // 1000}"
    sql = f"IF({inside}, {_EPOCH} + {_MICRO} * ({raw} * 1000), NULL)"
    return _Scalar(sql, "timestamp_ntz", fallible=True)


def _instant(raw: str) -> _Scalar:
    cast = f"try_cast({raw} AS timestamp)"
    sql = f"IF({cast} BETWEEN {_FIRST_INSTANT} AND {_LAST_INSTANT}, {cast}, NULL)"
    return _Scalar(sql, "timestamp", fallible=True)


def _micro_time(raw: str) -> _Scalar:
    return _Scalar(postgres_text.time_of_day(raw), "string")


def _milli_time(raw: str) -> _Scalar:
    return _micro_time(f"(CAST({raw} AS bigint) * 1000)")


_TEMPORAL: Final = {
    "io.debezium.time.Date": _date,
    "io.debezium.time.MicroTime": _micro_time,
    "io.debezium.time.Time": _milli_time,
    "io.debezium.time.MicroTimestamp": _micro_timestamp,
    "io.debezium.time.Timestamp": _milli_timestamp,
    "io.debezium.time.ZonedTimestamp": _instant,
}
_TEXTS: Final = {
    "io.debezium.time.Date": postgres_text.date,
    "io.debezium.time.MicroTimestamp": postgres_text.timestamp,
    "io.debezium.time.ZonedTimestamp": postgres_text.instant,
}
