"""Values as Postgres itself writes them, from the connector's forms of them: SQL text.

Postgres's ISO style, in UTC. What has no such text, or one that the form does not tell, is null.
"""

from collections.abc import Mapping
from typing import Final

from cdc.events.values.pg_types import INFINITE_DAYS, NUMBER_WORDS
from cdc.events.values.sql_text import spark_string

_INFINITE_MICROS: Final = {"infinity": 2**63 - 1, "-infinity": -(2**63)}
_DAY: Final = 86_400_000_000
_FIRST_DAY: Final = -2_440_588  # 4714-11-24 BC, the first that Postgres knows
_LAST_DAY: Final = 2_145_042_905  # 5874897-12-31
_FIRST_MICRO: Final = _FIRST_DAY * _DAY


def number(raw: str, *, whole: bool) -> str:
    """``whole`` where the scale is negative: the connector then puts zeros behind the point."""
    cases = " ".join(
        f"WHEN {spark_string(name)} THEN {spark_string(text)}"
        for name, text in NUMBER_WORDS.items()
    )
    plain = f"regexp_replace({raw}, '[.]0*$', '')" if whole else raw
    return f"CASE {raw} {cases} ELSE {plain} END"


def special_number(raw: str) -> str:
    """Whether it is one of the words for what is no number."""
    words = ", ".join(map(spark_string, NUMBER_WORDS))
    return f"{raw} IN ({words})"


def date(days: str) -> str:
    known = f"{days} BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"
    text = f"IF({known}, concat({_day(days)}, {_era(days)}), NULL)"
    return f"CASE {days} {_whens(INFINITE_DAYS)} ELSE {text} END"


def timestamp(micros: str) -> str:
    """From microseconds since 1970. What does not fit 64 bits has come around, to before the first.

    The connector makes the largest number, which is infinity, of whole seconds beyond it.
    """
    days, time = f"floor({micros} / {_DAY}BD)", f"pmod({micros}, {_DAY})"
    parts = f"named_struct('d', CAST({days} AS int), 't', {time})"
    made = f"concat({_day('p.d')}, ' ', {time_of_day('p.t')}, {_era('p.d')})"
    text = f"element_at(transform(array({parts}), p -> {made}), 1)"
    known = f"{micros} >= {_FIRST_MICRO}"
    return f"CASE {micros} {_whens(_INFINITE_MICROS)} ELSE IF({known}, {text}, NULL) END"


_INSTANT: Final = r"^([+-]?)(\d{4,})-(\d\d-\d\d)T(\d\d:\d\d:\d\d)((?:\.\d+)?)Z$"


def instant(raw: str) -> str:
    """From ISO 8601 with astronomical years."""
    sign, year, day, time, fraction = (
        f"regexp_extract({raw}, {spark_string(_INSTANT)}, {group})" for group in range(1, 6)
    )
    number = f"CAST(concat(IF({sign} = '-', '-', ''), {year}) AS int)"
    parts = f"named_struct('y', {number}, 'd', {day}, 't', {time}, 'f', {fraction})"
    made = (
        f"concat({_year('p.y')}, '-', p.d, ' ', p.t, {_trimmed('p.f')}, '+00', "
        "IF(p.y < 1, ' BC', ''))"
    )
    text = f"element_at(transform(array({parts}), p -> {made}), 1)"
    return (
        f"CASE WHEN {raw} IN ('infinity', '-infinity') THEN {raw} "
        f"WHEN {raw} RLIKE {spark_string(_INSTANT)} THEN {text} END"
    )


def time_of_day(micros: str) -> str:
    """``24:00:00`` too."""
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


def bits(raw: str, length: int) -> str:
    """From bytes, the last bits first, without the zeros in front."""
    digits = f"substring(hex({raw}), 2 * b - 1, 2)"
    octets = (
        f"transform(sequence(octet_length({raw}), 1, -1), b -> lpad(conv({digits}, 16, 2), 8, '0'))"
    )
    # array_join: of NULL it is NULL, concat_ws would make an empty text of it.
    filled = (
        f"concat(repeat('0', {length}), IF(octet_length({raw}) = 0, '', array_join({octets}, '')))"
    )
    return f"right({filled}, {length})"


def _trimmed(fraction: str) -> str:
    """Without the zeros at its end; nothing of a fraction that is zero."""
    return f"regexp_replace({fraction}, '[.]?0*$', '')"


def _whens(numbers: Mapping[str, int]) -> str:
    return " ".join(
        f"WHEN {_long(number)} THEN {spark_string(text)}" for text, number in numbers.items()
    )


def _long(number: int) -> str:
    """The smallest one has no literal of its own."""
    return f"({number + 1}L - 1L)" if number < 0 else f"{number}L"


def _day(days: str) -> str:
    made = f"date_from_unix_date({days})"
    month, day = (f"lpad({part}({made}), 2, '0')" for part in ("month", "day"))
    return f"concat({_year(f'year({made})')}, '-', {month}, '-', {day})"


def _era(days: str) -> str:
    return f"IF(year(date_from_unix_date({days})) < 1, ' BC', '')"


def _year(year: str) -> str:
    """The year before 1 is 1 BC."""
    counted = f"IF({year} < 1, 1 - {year}, {year})"
    return f"lpad({counted}, greatest(4, length({counted})), '0')"
