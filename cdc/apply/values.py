"""How a column's value gets from Avro to the lake, as SQL text over a field of the decoded event.

Three texts per column: the value; whether it could not be kept (it was there and has no exact form
in the lake); whether it only says that it did not change. Pure: Spark is not needed to say it.
"""

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any, Final

from cdc.events.schema import RowField, fits
from cdc.events.types import branches, canonical, lake_type

FIRST_DAY: Final = -719_162  # 0001-01-01, the first day every reader of Parquet agrees on
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
_SPECIAL_NUMBERS: Final[dict[str, str]] = {
    "NAN": "NaN",
    "POSITIVE_INFINITY": "Infinity",
    "NEGATIVE_INFINITY": "-Infinity",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """SQL texts; None is a condition that cannot be."""

    sql: str
    failed: str | None = None
    unchanged: str | None = None


@dataclass(frozen=True, slots=True)
class _Scalar:
    sql: str
    spark: str  # type of ``sql``
    fallible: bool = False


def literal(text: str) -> str:
    """A SQL string, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def value(field: RowField, raw: str, made: str, target: str, token: str) -> Value:
    """The texts for one column, from the field ``raw`` to a column of type ``target``.

    ``made`` names the column that will hold the value: whether it failed is asked afterwards.
    """
    branch = branches(field.type)[0]
    kept = lake_type(field.pg)
    lost = f"({raw} IS NOT NULL AND {made} IS NULL)"
    if kept.refused or not fits(kept.spark, target):
        return Value(sql=f"CAST(NULL AS {target})", failed=lost)
    unchanged = unchanged_when(branch, raw, token)
    if _kind(branch) == "array":
        sql, failed = _array(field, branch, raw, made, target)
    else:
        scalar = _to(_scalar(branch, canonical(field.pg.name), raw, kept.spark), target)
        sql, failed = scalar.sql, lost if scalar.fallible else _not_text(made, target)
    if unchanged is None:
        return Value(sql=sql, failed=failed)
    known = failed and f"({failed} AND NOT ({unchanged}))"
    return Value(sql=f"IF({unchanged}, NULL, {sql})", failed=known, unchanged=unchanged)


def unchanged_when(branch: Any, raw: str, token: str) -> str | None:  # noqa: ANN401 - Avro is JSON
    """Whether the value is the connector's placeholder for one that did not change.

    Its form follows the column's type: the token (of hstore, a pair of it), its bytes, or an
    array of one of those, of its bytes as numbers, or of a UUID made of it.
    """
    kind = _kind(branch)
    pair = f'{{"{token}":"{token}"}}'
    if kind == "string":
        return f"{raw} IN ({literal(token)}, {literal(pair)})"
    if kind == "bytes":
        return f"{raw} = {_binary(token)}"
    return (
        _unchanged_array(_kind(branches(branch["items"])[0]), raw, token)
        if kind == "array"
        else None
    )


def _unchanged_array(item: str, raw: str, token: str) -> str | None:
    data = token.encode()
    if item == "string":
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        made = str(uuid.UUID(bytes=digest, version=3))
        return f"{raw} IN (array({literal(token)}), array({literal(made)}))"
    if item == "bytes":
        return f"{raw} = array({_binary(token)})"
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
        return f"CAST(NULL AS {target})", f"({raw} IS NOT NULL AND {made} IS NULL)"
    inner = target.removeprefix("array<").removesuffix(">")
    kept = lake_type(element).spark
    scalar = _to(_scalar(items, canonical(element.name), "x", kept), inner)
    if scalar.sql == "x":
        broken = _not_text("x", inner)
        return raw, broken and f"exists({made}, x -> {broken})"
    nulls = "size(filter({}, x -> x IS NULL))"
    failed = f"({raw} IS NOT NULL AND {nulls.format(made)} <> {nulls.format(raw)})"
    return f"transform({raw}, x -> {scalar.sql})", failed if scalar.fallible else None


def _not_text(made: str, target: str) -> str | None:
    """Spark's decoder takes any bytes for text; readers of the lake would stop at them."""
    return f"NOT is_valid_utf8({made})" if target == "string" else None


def _to(scalar: _Scalar, target: str) -> _Scalar:
    if scalar.spark == target:
        return scalar
    return _Scalar(f"try_cast({scalar.sql} AS {target})", target, fallible=True)


def _scalar(branch: Any, pg: str, raw: str, kept: str) -> _Scalar:  # noqa: ANN401
    logical = branch.get("connect.name", "") if isinstance(branch, dict) else ""
    if logical in _TEMPORAL:
        return _TEMPORAL[logical](raw)
    kind = _kind(branch)
    if pg == "numeric" and kind == "string":
        return _numeric(raw, kept)
    if pg == "bit" and kind == "boolean":
        return _Scalar(f"IF({raw} IS NULL, NULL, IF({raw}, '1', '0'))", "string")
    if pg == "interval" and kind == "string":
        return _Scalar(_interval(raw), "string", fallible=True)
    return _to(_Scalar(raw, _PRIMITIVES.get(kind, "?")), kept)


def _kind(branch: Any) -> str:  # noqa: ANN401
    if isinstance(branch, dict):
        return _kind(branch["type"])
    return str(branch)


def _numeric(raw: str, kept: str) -> _Scalar:
    if kept != "string":
        return _Scalar(f"try_cast({raw} AS {kept})", kept, fallible=True)
    cases = " ".join(f"WHEN '{name}' THEN '{text}'" for name, text in _SPECIAL_NUMBERS.items())
    return _Scalar(f"CASE {raw} {cases} ELSE {raw} END", "string")


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
    made = f"try_cast({raw} AS timestamp)"
    sql = f"IF({made} BETWEEN {_FIRST_INSTANT} AND {_LAST_INSTANT}, {made}, NULL)"
    return _Scalar(sql, "timestamp", fallible=True)


def _micro_time(raw: str) -> _Scalar:
    fraction = f"lpad(CAST({raw} % 1000000 AS string), 6, '0')"
    parts = ", ':', ".join(
        f"lpad(CAST({part} AS string), 2, '0')"
        for part in (
            f"{raw} div 3600000000",
            f"{raw} div 60000000 % 60",
            f"{raw} div 1000000 % 60",
        )
    )
    tail = f"IF({raw} % 1000000 = 0, '', concat('.', TRIM(TRAILING '0' FROM {fraction})))"
    return _Scalar(f"concat({parts}, {tail})", "string")


_INTERVAL: Final = r"^P(-?\\d+)Y(-?\\d+)M(-?\\d+)DT(-?\\d+)H(-?\\d+)M(-?\\d+(?:\\.\\d+)?)S$"
_INTERVAL_PARTS: Final = ("bigint", "bigint", "bigint", "bigint", "bigint", "decimal(18,6)")


def _interval(raw: str) -> str:
    """Postgres's own text of an interval, from ``P1Y2M3DT4H5M6.789S``.

    A sign is written where the part before it was negative and this one is not.
    """
    parts = ", ".join(
        f"'{name}', CAST(regexp_extract({raw}, '{_INTERVAL}', {number}) AS {kind})"
        for number, (name, kind) in enumerate(
            zip(("y", "mo", "d", "h", "mi", "s"), _INTERVAL_PARTS, strict=True), start=1
        )
    )
    years = _interval_part("p.y", "year", before="false")
    months = _interval_part("p.mo", "mon", before="p.y < 0")
    days = _interval_part("p.d", "day", before="IF(p.mo = 0, p.y, p.mo) < 0")
    made = f"concat_ws(' ', {years}, {months}, {days}, {_interval_time()})"
    return (
        f"IF({raw} RLIKE '{_INTERVAL}', "
        f"element_at(transform(array(named_struct({parts})), p -> {made}), 1), NULL)"
    )


def _interval_part(value: str, unit: str, *, before: str) -> str:
    plus = f"IF({before} AND {value} > 0, '+', '')"
    return f"IF({value} = 0, NULL, concat({plus}, {value}, ' {unit}', IF({value} = 1, '', 's')))"


def _interval_time() -> str:
    before = "IF(p.d <> 0, p.d, IF(p.mo <> 0, p.mo, p.y)) < 0"
    sign = f"CASE WHEN p.h < 0 OR p.mi < 0 OR p.s < 0 THEN '-' WHEN {before} THEN '+' ELSE '' END"
    hours = "lpad(abs(p.h), greatest(2, length(abs(p.h))), '0')"
    seconds = (
        "concat(lpad(CAST(floor(abs(p.s)) AS string), 2, '0'), IF(p.s % 1 = 0, '', "
        "TRIM(TRAILING '0' FROM substring(CAST(abs(p.s) % 1 AS string), 2))))"
    )
    some = "p.h <> 0 OR p.mi <> 0 OR p.s <> 0 OR (p.y = 0 AND p.mo = 0 AND p.d = 0)"
    return (
        f"IF({some}, concat({sign}, {hours}, ':', lpad(abs(p.mi), 2, '0'), ':', {seconds}), NULL)"
    )


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
