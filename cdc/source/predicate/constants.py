"""Read the constants of a predicate by the type of the column they are compared with.

A constant is parsed here and spelled again in a form that Postgres and Spark read alike. Each
reader returns None for text that is not a value of the column, or that the two would read
differently.
"""

import re
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from math import isfinite
from typing import Final

from cdc.events.structure.declared import SourceColumn
from cdc.events.values.lake_types import MAX_PRECISION
from cdc.events.values.sql_text import postgres_string, spark_string, standard_string
from cdc.source.predicate.texts import Texts, string

_INTEGERS: Final = {"int2": ("SMALLINT", 15), "int4": ("INT", 31), "int8": ("BIGINT", 63)}
_BITS: Final = dict(_INTEGERS.values())
_DAY: Final = r"(\d{4}-\d{2}-\d{2})"
_CLOCK: Final = r"(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)"
_DATE: Final = re.compile(_DAY, re.ASCII)
_TIMESTAMP: Final = re.compile(rf"{_DAY}(?:[ T]{_CLOCK})?", re.ASCII)
_INSTANT: Final = re.compile(
    rf"{_DAY}[ T]{_CLOCK} ?(?:Z|UTC|([+-]\d{{2}})(?::?(\d{{2}}))?)", re.ASCII
)
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_SPECIAL: Final = re.compile(r"(nan)|([+-]?)inf(inity)?", re.ASCII | re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_TRUTH: Final = {"true": "TRUE", "t": "TRUE", "false": "FALSE", "f": "FALSE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Holds a constant as the user typed it.

    ``cast`` is sqlglot's name of the type it is cast to.
    """

    text: str
    form: str  # number, string, boolean
    cast: str = ""

    @property
    def shown(self) -> str:
        """Return the constant as messages show it."""
        return standard_string(self.text) if self.form == "string" else self.text


def whole(given: Constant) -> int | None:
    """Return the value of an integer constant; None if it is no integer, or exceeds its type."""
    if not _WHOLE.fullmatch(given.text):
        return None
    number, bits = int(given.text), _BITS.get(given.cast, 63)
    return number if -(2**bits) <= number < 2**bits else None


def integer(number: int, pg: str) -> Texts:
    """Spell a number as an integer type of Postgres, or as bigint if it does not fit the type.

    The comparison is correct either way.
    """
    spark, bits = _INTEGERS[pg]
    if not -(2**bits) <= number < 2**bits:
        return integer(number, "int8")
    text = str(number)
    return Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.{pg})",
        f"CAST({spark_string(text)} AS {spark})",
        text,
    )


def an_integer(given: Constant, column: SourceColumn) -> Texts | None:
    """Read an integer, for a column of any integer type."""
    number = whole(given)
    pg = column.pg.name if column.pg.name in _INTEGERS else "int8"
    return None if number is None else integer(number, pg)


def an_oid(given: Constant, column: SourceColumn) -> Texts | None:
    """Read an oid. Negative numbers are refused, because Postgres reads them as large oids."""
    number = whole(given)
    inside = number is not None and 0 <= number < 2**32
    return an_integer(given, column) if inside else None


def a_float(given: Constant, column: SourceColumn) -> Texts | None:
    """Read the nearest float of the column's size; None if it overflows or rounds to zero."""
    is_single = column.pg.name == "float4"
    if given.cast and (given.cast == "FLOAT") is not is_single:
        return None
    text = _special(given) or _nearest(given.text, is_single=is_single)
    # Postgres reads a plain number as a double, which differs from the same float4 value.
    shown = text if text[-1:].isdigit() and not is_single else standard_string(text)
    source = f"CAST({postgres_string(text)} AS pg_catalog.{column.pg.name})"
    return Texts(source, f"CAST({spark_string(text)} AS DOUBLE)", shown) if text else None


def _special(given: Constant) -> str:
    match = _SPECIAL.fullmatch(given.text)
    if match is None or given.form != "string":
        return ""
    return "NaN" if match[1] else f"{match[2].removeprefix('+')}Infinity"


def _nearest(text: str, *, is_single: bool) -> str:
    if not _NUMBER.fullmatch(text):
        return ""
    number = float(text)
    if is_single and isfinite(number):
        try:
            (number,) = struct.unpack("f", struct.pack("f", number))
        except OverflowError:
            return ""
    vanished = number == 0 and Decimal(text) != 0
    return repr(number + 0.0) if isfinite(number) and not vanished else ""  # without a -0


def a_decimal(given: Constant, column: SourceColumn) -> Texts | None:
    """Read a number exactly; None if it has more decimals than the column."""
    precision, scale = (int(number) for number in re.findall(r"\d+", column.type))
    if not _NUMBER.fullmatch(given.text):
        return None
    try:
        number = Decimal(given.text).quantize(
            Decimal(1).scaleb(-scale), context=Context(prec=MAX_PRECISION)
        )
    except InvalidOperation:
        return None
    if number != Decimal(given.text):
        return None
    fits = len(number.as_tuple().digits) <= precision
    text, digits = f"{number:f}", precision if fits else MAX_PRECISION
    return Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.numeric)",
        f"CAST({spark_string(text)} AS DECIMAL({digits},{scale}))",
        text,
    )


def a_boolean(given: Constant, _: SourceColumn) -> Texts | None:
    """Read true, false, t or f, in any case."""
    word = _TRUTH.get(given.text.lower())
    return None if word is None else Texts(word, word, word.lower())


def a_date(given: Constant, _: SourceColumn) -> Texts | None:
    """Read a date in ISO form, from year 1 to 9999."""
    match = _DATE.fullmatch(given.text)
    try:
        text = date.fromisoformat(match[1]).isoformat() if match else ""
    except ValueError:
        return None
    texts = Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.date)",
        f"DATE{spark_string(text)}",
        f"date {standard_string(text)}",
    )
    return texts if text else None


def a_timestamp(given: Constant, _: SourceColumn) -> Texts | None:
    """Read a timestamp without a zone; a date alone means its midnight."""
    match = _TIMESTAMP.fullmatch(given.text)
    if match is None or (given.cast == "DATE" and match[2]):
        return None
    try:
        text = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}").isoformat(" ")
    except ValueError:
        return None
    source = f"CAST({postgres_string(text)} AS pg_catalog.timestamp)"
    return Texts(source, f"TIMESTAMP_NTZ{spark_string(text)}", f"timestamp {standard_string(text)}")


def an_instant(given: Constant, _: SourceColumn) -> Texts | None:
    """Read a timestamp with an offset, and spell it in UTC.

    Zone names are refused, because their meaning depends on each server's zone files.
    """
    match = _INSTANT.fullmatch(given.text)
    if match is None:
        return None
    day, clock, hours, minutes = match.groups()
    zone = f"{hours}:{minutes or '00'}" if hours else "+00:00"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    text = moment.replace(tzinfo=None).isoformat(" ")
    in_utc = f"{text}+00"
    source = f"CAST({postgres_string(in_utc)} AS pg_catalog.timestamptz)"
    lake = f"TIMESTAMP{spark_string(f'{text}Z')}"
    return Texts(source, lake, f"timestamptz {standard_string(in_utc)}")


def a_text(given: Constant, _: SourceColumn) -> Texts | None:
    """Read a string."""
    return string(given.text)


def a_padded_text(given: Constant, _: SourceColumn) -> Texts | None:
    """Read a char(n), without its trailing blanks, which are insignificant."""
    return string(given.text.rstrip(" "), "bpchar")


def a_label(given: Constant, _: SourceColumn) -> Texts | None:
    """Read an enum label as a plain string; Postgres itself refuses an unknown label."""
    return Texts(postgres_string(given.text), spark_string(given.text), standard_string(given.text))


def a_uuid(given: Constant, _: SourceColumn) -> Texts | None:
    """Read a UUID with hyphens, in any case."""
    return string(given.text.lower(), "uuid") if _UUID.fullmatch(given.text) else None
