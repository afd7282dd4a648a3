"""Constants of a predicate, read by the type of the column that they are compared with.

What was typed is read here and written anew in one form that Postgres and Spark read alike. What
the two would not, or what is no value of the column, is None: not a constant of that type.
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
class Given:
    """A constant as it was typed; ``cast`` is the type it was given, by sqlglot's name."""

    text: str
    form: str  # number, string, boolean
    cast: str = ""

    @property
    def shown(self) -> str:
        return standard_string(self.text) if self.form == "string" else self.text


def whole(given: Given) -> int | None:
    """The number of an integer constant; None where it is none, or no bigint."""
    if not _WHOLE.fullmatch(given.text):
        return None
    number, bits = int(given.text), _BITS.get(given.cast, 63)
    return number if -(2**bits) <= number < 2**bits else None


def integer(number: int, pg: str) -> Texts:
    """Of the type where it fits and of bigint where it does not: the comparison is right."""
    spark, bits = _INTEGERS[pg]
    if not -(2**bits) <= number < 2**bits:
        return integer(number, "int8")
    text = str(number)
    return Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.{pg})",
        f"CAST({spark_string(text)} AS {spark})",
        text,
    )


def an_integer(given: Given, column: SourceColumn) -> Texts | None:
    number = whole(given)
    pg = column.pg.name if column.pg.name in _INTEGERS else "int8"
    return None if number is None else integer(number, pg)


def an_oid(given: Given, column: SourceColumn) -> Texts | None:
    """From 0 on: Postgres takes a negative integer for a large oid."""
    number = whole(given)
    inside = number is not None and 0 <= number < 2**32
    return an_integer(given, column) if inside else None


def a_float(given: Given, column: SourceColumn) -> Texts | None:
    """The nearest value of the column's type; one that overflows or vanishes is none."""
    is_single = column.pg.name == "float4"
    if given.cast and (given.cast == "FLOAT") is not is_single:
        return None
    text = _special(given) or _nearest(given.text, is_single=is_single)
    # Postgres takes a plain number for a double: beside a single one it would be another value.
    shown = text if text[-1:].isdigit() and not is_single else standard_string(text)
    source = f"CAST({postgres_string(text)} AS pg_catalog.{column.pg.name})"
    return Texts(source, f"CAST({spark_string(text)} AS DOUBLE)", shown) if text else None


def _special(given: Given) -> str:
    found = _SPECIAL.fullmatch(given.text)
    if found is None or given.form != "string":
        return ""
    return "NaN" if found[1] else f"{found[2].removeprefix('+')}Infinity"


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


def a_decimal(given: Given, column: SourceColumn) -> Texts | None:
    """Exactly the number; one with more digits after the point than the column has is none."""
    precision, scale = (int(digits) for digits in re.findall(r"\d+", column.type))
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
    text, kept = f"{number:f}", precision if fits else MAX_PRECISION
    return Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.numeric)",
        f"CAST({spark_string(text)} AS DECIMAL({kept},{scale}))",
        text,
    )


def a_boolean(given: Given, _: SourceColumn) -> Texts | None:
    found = _TRUTH.get(given.text.lower())
    return None if found is None else Texts(found, found, found.lower())


def a_date(given: Given, _: SourceColumn) -> Texts | None:
    found = _DATE.fullmatch(given.text)
    try:
        text = date.fromisoformat(found[1]).isoformat() if found else ""
    except ValueError:
        return None
    made = Texts(
        f"CAST({postgres_string(text)} AS pg_catalog.date)",
        f"DATE{spark_string(text)}",
        f"date {standard_string(text)}",
    )
    return made if text else None


def a_timestamp(given: Given, _: SourceColumn) -> Texts | None:
    """A date alone is its midnight."""
    found = _TIMESTAMP.fullmatch(given.text)
    if found is None or (given.cast == "DATE" and found[2]):
        return None
    try:
        text = datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00'}").isoformat(" ")
    except ValueError:
        return None
    source = f"CAST({postgres_string(text)} AS pg_catalog.timestamp)"
    return Texts(source, f"TIMESTAMP_NTZ{spark_string(text)}", f"timestamp {standard_string(text)}")


def an_instant(given: Given, _: SourceColumn) -> Texts | None:
    """In UTC. A zone's name is refused: what it stands for depends on a server's zone files."""
    found = _INSTANT.fullmatch(given.text)
    if found is None:
        return None
    day, clock, hours, minutes = found.groups()
    zone = f"{hours}:{minutes or '00'}" if hours else "+00:00"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    text = moment.replace(tzinfo=None).isoformat(" ")
    said = f"{text}+00"
    source = f"CAST({postgres_string(said)} AS pg_catalog.timestamptz)"
    lake = f"TIMESTAMP{spark_string(f'{text}Z')}"
    return Texts(source, lake, f"timestamptz {standard_string(said)}")


def a_text(given: Given, _: SourceColumn) -> Texts | None:
    return string(given.text)


def a_padded_text(given: Given, _: SourceColumn) -> Texts | None:
    """The blanks at the end of a char(n) mean nothing."""
    return string(given.text.rstrip(" "), "bpchar")


def a_label(given: Given, _: SourceColumn) -> Texts | None:
    """Postgres takes a plain string for a label of the enum, and refuses one that is none."""
    return Texts(postgres_string(given.text), spark_string(given.text), standard_string(given.text))


def a_uuid(given: Given, _: SourceColumn) -> Texts | None:
    return string(given.text.lower(), "uuid") if _UUID.fullmatch(given.text) else None
