"""SQL text for Postgres's own text of an interval, from the connector's ``P1Y2M3DT4H5M6.789S``."""

from typing import Final

from cdc.events.values.sql_text import spark_string

_PATTERN: Final = r"^P(-?\d+)Y(-?\d+)M(-?\d+)DT(-?\d+)H(-?\d+)M(-?\d+(?:\.\d+)?)S$"
_PARTS: Final = ("bigint", "bigint", "bigint", "bigint", "bigint", "decimal(18,6)")


def interval(raw: str) -> str:
    """Return SQL text for Postgres's text of the interval ``raw``; null if ``raw`` is malformed.

    Postgres writes a plus sign before a positive part that follows a negative one.
    """
    parts = ", ".join(
        f"{spark_string(name)},"
        f" CAST(regexp_extract({raw}, {spark_string(_PATTERN)}, {number}) AS {kind})"
        for number, (name, kind) in enumerate(
            zip(("y", "mo", "d", "h", "mi", "s"), _PARTS, strict=True), start=1
        )
    )
    years = _part("p.y", "year", before="false")
    months = _part("p.mo", "mon", before="p.y < 0")
    days = _part("p.d", "day", before="IF(p.mo = 0, p.y, p.mo) < 0")
    joined = f"concat_ws(' ', {years}, {months}, {days}, {_time()})"
    return (
        f"IF({raw} RLIKE {spark_string(_PATTERN)}, "
        f"element_at(transform(array(named_struct({parts})), p -> {joined}), 1), NULL)"
    )


def _part(value: str, unit: str, *, before: str) -> str:
    plus = f"IF({before} AND {value} > 0, '+', '')"
    named = f"{spark_string(f' {unit}')}, IF({value} = 1, '', 's')"
    return f"IF({value} = 0, NULL, concat({plus}, {value}, {named}))"


def _time() -> str:
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
