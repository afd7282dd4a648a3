"""Dates and times as Postgres itself writes them, from the connector's forms of them.

The style is Postgres's ISO style, in UTC. The text is null for a value that has no such text, or
whose text cannot be derived from the connector's form. Each conversion is a Spark text with its
Python beside it.
"""

import re
from collections.abc import Mapping
from typing import Final

from cdc.apply.changes.conversion import END, Conversion
from cdc.events.values.pg_types import INFINITE_DAYS
from cdc.events.values.sql_text import spark_string

_INFINITE_MICROS: Final = {"infinity": 2**63 - 1, "-infinity": -(2**63)}
_DAY: Final = 86_400_000_000
_FIRST_DAY: Final = -2_440_588  # 4714-11-24 BC, the first day in Postgres
_LAST_DAY: Final = 2_145_042_905  # 5874897-12-31
_FIRST_MICRO: Final = _FIRST_DAY * _DAY
_DAY_WORDS: Final = {number: word for word, number in INFINITE_DAYS.items()}
_MICRO_WORDS: Final = {number: word for word, number in _INFINITE_MICROS.items()}


def _date_sql(days: str) -> str:
    is_valid = f"{days} BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"
    text = f"IF({is_valid}, concat({_day(days)}, {_era(days)}), NULL)"
    return f"CASE {days} {_whens(INFINITE_DAYS)} ELSE {text} END"


def _date_of(days: int) -> str | None:
    if _FIRST_DAY <= days <= _LAST_DAY:
        year, month, day = _civil(days)
        return f"{_year_of(year)}-{month:02}-{day:02}{_era_of(year)}"
    return _DAY_WORDS.get(days)


def _timestamp_sql(micros: str) -> str:
    days, time = f"floor({micros} / {_DAY}BD)", f"pmod({micros}, {_DAY})"
    parts = f"named_struct('d', CAST({days} AS int), 't', {time})"
    joined = f"concat({_day('p.d')}, ' ', {_time_sql('p.t')}, {_era('p.d')})"
    text = f"element_at(transform(array({parts}), p -> {joined}), 1)"
    is_valid = f"{micros} >= {_FIRST_MICRO}"
    return f"CASE {micros} {_whens(_INFINITE_MICROS)} ELSE IF({is_valid}, {text}, NULL) END"


def _timestamp_of(micros: int) -> str | None:
    if micros < _FIRST_MICRO or micros in _MICRO_WORDS:
        return _MICRO_WORDS.get(micros)
    days, time = divmod(micros, _DAY)
    year, month, day = _civil(days)
    return f"{_year_of(year)}-{month:02}-{day:02} {_time_of(time)}{_era_of(year)}"


_INSTANT: Final = rf"^([+-]?)(\d{{4,}})-(\d\d-\d\d)T(\d\d:\d\d:\d\d)((?:\.\d+)?)Z{END}"
_IS_INSTANT: Final = re.compile(_INSTANT, re.ASCII)


def _instant_sql(raw: str) -> str:
    sign, year, day, time, fraction = (
        f"regexp_extract({raw}, {spark_string(_INSTANT)}, {group})" for group in range(1, 6)
    )
    number = f"CAST(concat(IF({sign} = '-', '-', ''), {year}) AS int)"
    parts = f"named_struct('y', {number}, 'd', {day}, 't', {time}, 'f', {fraction})"
    joined = (
        f"concat({_year('p.y')}, '-', p.d, ' ', p.t, {_trimmed('p.f')}, '+00', "
        "IF(p.y < 1, ' BC', ''))"
    )
    text = f"element_at(transform(array({parts}), p -> {joined}), 1)"
    return (
        f"CASE WHEN {raw} IN ('infinity', '-infinity') THEN {raw} "
        f"WHEN {raw} RLIKE {spark_string(_INSTANT)} THEN {text} END"
    )


def _instant_of(value: str) -> str | None:
    found = _IS_INSTANT.match(value)
    if found is None:
        return value if value in _INFINITE_MICROS else None
    sign, digits, day, time, fraction = found.groups()
    year = -int(digits) if sign == "-" else int(digits)
    return f"{_year_of(year)}-{day} {time}{_trimmed_of(fraction)}+00{_era_of(year)}"


def _time_sql(micros: str) -> str:
    parts = ", ':', ".join(
        f"lpad(CAST({part} AS string), 2, '0')"
        for part in (
            f"{micros} div 3600000000",
            f"{micros} div 60000000 % 60",
            f"{micros} div 1000000 % 60",
        )
    )
    fraction = f"concat('.', lpad(CAST({micros} % 1000000 AS string), 6, '0'))"
    return f"concat({parts}, {_trimmed(fraction)})"


def _time_of(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    whole = f"{hour:02}:{minute:02}:{second:02}"
    return f"{whole}{_trimmed_of(f'.{fraction:06}')}" if fraction else whole


def _time_of_day_sql(micros: str) -> str:
    return f"IF({micros} BETWEEN 0 AND {_DAY}, {_time_sql(micros)}, NULL)"


def _time_of_day_of(micros: int) -> str | None:
    return _time_of(micros) if 0 <= micros <= _DAY else None


DATE: Final = Conversion(sql=_date_sql, of=_date_of, fallible=True)
"""Of a date, given in days since 1970."""
TIMESTAMP: Final = Conversion(sql=_timestamp_sql, of=_timestamp_of, fallible=True)
"""Of a timestamp, given in microseconds since 1970.

A value that does not fit 64 bits has wrapped around to before the first timestamp, so its text is
null. For whole seconds beyond the largest number, the connector sends that number, which means
infinity.
"""
INSTANT: Final = Conversion(sql=_instant_sql, of=_instant_of, fallible=True)
"""Of a timestamptz, given in ISO 8601 with astronomical years."""
TIME_OF_DAY: Final = Conversion(sql=_time_of_day_sql, of=_time_of_day_of, fallible=True)
"""Of a time, given in microseconds; up to ``24:00:00``. Others come from broken bytes only."""
MILLI_TIME_OF_DAY: Final = Conversion(
    sql=lambda raw: _time_of_day_sql(f"(CAST({raw} AS bigint) * 1000)"),
    of=lambda millis: _time_of_day_of(millis * 1000),
    fallible=True,
)


def _trimmed(fraction: str) -> str:
    """Return SQL text that removes the fraction's trailing zeros; zero becomes the empty text."""
    return f"regexp_replace({fraction}, '[.]?0*$', '')"


def _trimmed_of(fraction: str) -> str:
    return fraction.rstrip("0").rstrip(".")


def _whens(numbers: Mapping[str, int]) -> str:
    return " ".join(
        f"WHEN {_long(number)} THEN {spark_string(text)}" for text, number in numbers.items()
    )


def _long(number: int) -> str:
    """The smallest bigint has no literal."""
    return f"({number + 1}L - 1L)" if number < 0 else f"{number}L"


def _day(days: str) -> str:
    calendar = f"date_from_unix_date({days})"
    month, day = (f"lpad({part}({calendar}), 2, '0')" for part in ("month", "day"))
    return f"concat({_year(f'year({calendar})')}, '-', {month}, '-', {day})"


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of any day since 1970; the standard library has years 1 to 9999.

    Counts eras of 400 years and years that begin in March, so that the leap day is the last one.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    years = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * years + years // 4 - years // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return era * 400 + years + (month > 9), month + 3 - 12 * (month > 9), day  # noqa: PLR2004


def _era(days: str) -> str:
    return f"IF(year(date_from_unix_date({days})) < 1, ' BC', '')"


def _era_of(year: int) -> str:
    return " BC" if year < 1 else ""


def _year(year: str) -> str:
    """The year before 1 is 1 BC."""
    counted = f"IF({year} < 1, 1 - {year}, {year})"
    return f"lpad({counted}, greatest(4, length({counted})), '0')"


def _year_of(year: int) -> str:
    return f"{1 - year if year < 1 else year:04}"
