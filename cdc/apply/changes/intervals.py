"""Makes Postgres's own text of an interval from the connector's ``P1Y2M3DT4H5M6.789S``.

The conversion is a Spark text with its Python beside it.
"""

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from cdc.apply.changes.conversion import END, Conversion
from cdc.events.values.sql_text import spark_string

_NUMBER: Final = r"-?\d{1,10}"  # hours have ten digits at most
_SIXTIETH: Final = r"-?[0-5]?\d"
_PATTERN: Final = (
    rf"^P({_NUMBER})Y({_NUMBER})M({_NUMBER})D"
    rf"T({_NUMBER})H({_SIXTIETH})M({_SIXTIETH}(?:\.\d+)?)S{END}"
)
_IS_INTERVAL: Final = re.compile(_PATTERN, re.ASCII)
_MICROSECOND: Final = Decimal("0.000001")
"""Postgres counts in these; the connector, which counts in floats, may write smaller parts."""
_PARTS: Final = ("bigint", "bigint", "bigint", "bigint", "bigint", "decimal(18,6)")


def _interval_sql(raw: str) -> str:
    """Null if ``raw`` is malformed; a plus sign is before a positive part after a negative one."""
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


def _interval_of(value: str) -> str | None:
    found = _IS_INTERVAL.match(value)
    if found is None:
        return None
    *whole, seconds = found.groups()
    years, months, days, hours, minutes = map(int, whole)
    rounded = Decimal(seconds).quantize(_MICROSECOND, ROUND_HALF_UP)
    parts = [
        _part_of(years, "year", before=0),
        _part_of(months, "mon", before=years),
        _part_of(days, "day", before=months or years),
        _time_of(hours, minutes, rounded, before=days or months or years),
    ]
    return " ".join(filter(None, parts))


def _part(value: str, unit: str, *, before: str) -> str:
    plus = f"IF({before} AND {value} > 0, '+', '')"
    named = f"{spark_string(f' {unit}')}, IF({value} = 1, '', 's')"
    return f"IF({value} = 0, NULL, concat({plus}, {value}, {named}))"


def _part_of(value: int, unit: str, *, before: int) -> str:
    plus = "+" if before < 0 < value else ""
    return f"{plus}{value} {unit}{'' if value == 1 else 's'}" if value else ""


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


def _time_of(hours: int, minutes: int, seconds: Decimal, *, before: int) -> str:
    """``before`` is the last part before the time that is not zero; 0 if there is none."""
    if before and not (hours or minutes or seconds):
        return ""
    negative = hours < 0 or minutes < 0 or seconds < 0
    sign = "-" if negative else "+" if before < 0 else ""
    fraction = f"{abs(seconds) % 1:f}"[1:].rstrip("0").rstrip(".")
    return f"{sign}{abs(hours):02}:{abs(minutes):02}:{int(abs(seconds)):02}{fraction}"


INTERVAL: Final = Conversion(sql=_interval_sql, of=_interval_of, fallible=True)
