"""What becomes of a value of each Postgres type on its way through the connector.

Found by sending values of every type through it, by snapshot and by stream.
Names are those of ``pg_type.typname``; one in parentheses stands for types that a database makes
for itself. docs/reference/types.md is made of this.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Fidelity(Enum):
    """How a value is kept."""

    EXACT = "exact"  # by the lake's type that means the same
    TEXT = "as text"  # which says all of it
    REFUSED = "refused"  # not at all: its column is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """``note`` is the reason of a refusal, or says more of the values; so does ``of_arrays``."""

    fidelity: Fidelity
    spark: str = "string"
    note: str = ""
    altered: str = ""  # in what its text is not Postgres's own
    caution: str = ""  # a value that nothing tells from another one
    arrays: bool = False  # of one dimension
    of_arrays: str = ""
    can_be_text: bool = False  # where the operator chooses so


LARGEST_BIT: Final = 128
"""Bits of a ``bit(n)`` that Postgres never stores out of line: such a value always arrives."""

INFINITE_DAYS: Final = {"infinity": 2_146_033_979, "-infinity": -2_147_472_691}
"""The days since 1970 that the connector writes for the two dates that have none."""

NUMBER_WORDS: Final = {
    "NAN": "NaN",
    "POSITIVE_INFINITY": "Infinity",
    "NEGATIVE_INFINITY": "-Infinity",
}
"""Postgres's text by what the connector writes for numerics that are no numbers."""

_OUT_OF_RANGE: Final = "infinite ones and years outside 1 to 9999 are refused, unless kept as text"
_BITS: Final = "every bit of it, -0 and the infinities too; NaN is one value"
_UNMARKED: Final = "the connector cannot say that a large one did not change"
_NULL_STOPS: Final = "a NULL in one stops the connector"
_NAN_STOPS: Final = "a NaN in one stops the connector"
_CUT: Final = "the connector cuts off their microseconds"
_ABSENT: Final = "the connector does not send them"
_ZONES: Final = "the connector reads them in its worker's time zone and alters those before 1582"
_ERAS: Final = "a BC date in one arrives as AD, and 5 to 14 October 1582 ten days later"
_GEOMETRY: Final = "the connector sends a structure of its own, not the value"
_CATALOGUE: Final = "its text changes with the catalogue, and no event says so"
_INTERNAL: Final = "Postgres keeps its own statistics in it"
_UNTRIED: Final = "the connector has a form of its own for this extension, which was not tried"
_EMPTY: Final = "the connector sends it empty"
_NUMBER: Final = "as a decimal number, without the currency sign"
_JSON: Final = "as a JSON object"
_INFINITE: Final = "an infinite one arrives as 00:00:00"
_WORKER: Final = "with times in the time zone of the connector's worker: let it be UTC"


def _exact(
    spark: str, note: str = "", *, of_arrays: str = _UNMARKED, can_be_text: bool = False
) -> Kept:
    return Kept(
        fidelity=Fidelity.EXACT,
        spark=spark,
        note=note,
        of_arrays=of_arrays,
        can_be_text=can_be_text,
    )


def _text(note: str = "", *, of_arrays: str = _NULL_STOPS, altered: str = "") -> Kept:
    return Kept(fidelity=Fidelity.TEXT, note=note, altered=altered, of_arrays=of_arrays)


def _refused(note: str) -> Kept:
    return Kept(fidelity=Fidelity.REFUSED, note=note, of_arrays=note)


def _with_arrays(found: Kept, of_arrays: str = "") -> Kept:
    return replace(found, arrays=True, of_arrays=of_arrays)


_NUMBERS: Final = {
    "bool": _exact("boolean"),
    "int2": _exact("smallint"),
    "int4": _with_arrays(_exact("int")),
    "int8": _with_arrays(_exact("bigint")),
    "oid": _exact("bigint"),
    "float4": _exact("float", _BITS),
    "float8": _exact("double", _BITS),
    "numeric": _exact(
        "decimal(p,s)",
        "up to 38 digits, where NaN is refused, unless kept as text; with more digits, or without "
        "a precision, a string of all of them, of NaN or of Infinity",
        of_arrays=_NAN_STOPS,
        can_be_text=True,
    ),
    "money": _text(_NUMBER, altered=_NUMBER, of_arrays=_ABSENT),
}
_TIMES: Final = {
    "date": _with_arrays(_exact("date", _OUT_OF_RANGE, can_be_text=True), _ERAS),
    "timestamp": _exact("timestamp_ntz", _OUT_OF_RANGE, of_arrays=_ZONES, can_be_text=True),
    "timestamptz": _exact("timestamp", _OUT_OF_RANGE, of_arrays=_ZONES, can_be_text=True),
    "time": _text("24:00:00 too", of_arrays=_CUT),
    "timetz": _refused("the connector gives it in UTC, and as NULL where its offset has seconds"),
    "interval": replace(
        _text(
            f"{_INFINITE}; one of more than 2147483647 hours stops the connector",
            of_arrays=_ABSENT,
        ),
        caution=_INFINITE,
    ),
}
_STRINGS: Final = {
    **dict.fromkeys(("text", "varchar", "uuid", "jsonb"), _with_arrays(_text())),
    "bpchar": _with_arrays(_text("char(n), with its blanks")),
    "json": _with_arrays(_text("as it was written")),
    "char": _text('"char", of one byte', of_arrays=_UNMARKED),
    "name": _text(of_arrays=_ABSENT),
    "bytea": _with_arrays(_exact("binary")),
    "xml": _text(of_arrays=_ABSENT),
    **dict.fromkeys(("jsonpath", "tsvector", "tsquery"), _text()),
    "bit": _text(
        f"bit(n) with n up to {LARGEST_BIT}; of longer ones the connector cannot say that they "
        "did not change",
        of_arrays="the connector sends NULL for them, and a NULL in one stops it",
    ),
    "varbit": _refused("the connector fills it up to whole bytes: its length is lost"),
}
_NETWORK: Final = dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), _text(of_arrays=_UNMARKED))
_GEOMETRIC: Final = dict.fromkeys(
    ("point", "line", "lseg", "box", "path", "polygon", "circle"), _refused(_GEOMETRY)
)
_RANGES: Final = {
    name: found
    for base, note in (
        *dict.fromkeys(("int4", "int8", "num", "ts", "date"), "").items(),
        ("tstz", _WORKER),
    )
    for name, found in (
        (f"{base}range", _text(note, of_arrays=_UNMARKED)),
        (f"{base}multirange", _text(note)),
    )
}
_SYSTEM: Final = {
    **dict.fromkeys(
        ("pg_lsn", "pg_snapshot", "txid_snapshot", "xid", "xid8", "cid", "tid"), _text()
    ),
    **dict.fromkeys(("int2vector", "oidvector"), _refused(_EMPTY)),
    **dict.fromkeys(
        (
            *("regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper"),
            *("regoperator", "regproc", "regprocedure", "regrole", "regtype", "aclitem"),
        ),
        _refused(_CATALOGUE),
    ),
    "refcursor": _refused("the connector tries to read the cursor"),
    **dict.fromkeys(
        (
            *("pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "gtsvector"),
            *("pg_brin_bloom_summary", "pg_brin_minmax_multi_summary"),
        ),
        _refused(_INTERNAL),
    ),
}
_EXTENSIONS: Final = {
    "citext": _text(of_arrays=_UNMARKED),
    "hstore": _text(_JSON, altered=_JSON, of_arrays=_UNMARKED),
    **dict.fromkeys(("ltree", "lquery", "ltxtquery", "cube", "seg"), _text()),
    **dict.fromkeys(
        ("isbn", "isbn13", "ismn", "ismn13", "issn", "issn13", "ean13", "upc"), _text()
    ),
    **dict.fromkeys(
        ("geometry", "geography", "vector", "halfvec", "sparsevec"), _refused(_UNTRIED)
    ),
}

ENUM, COMPOSITE, RANGE, MULTIRANGE, OTHER = (
    f"({kind})" for kind in ("enum", "composite", "range", "multirange", "other")
)
_OWN: Final = {
    ENUM: _text(),
    COMPOSITE: _text(
        f"{_WORKER}; an attribute added to the type is not seen until the row changes"
    ),
    RANGE: _text(),
    MULTIRANGE: _text(),
    OTHER: _text("as its output function writes it"),
}

FAMILIES: Final[dict[str, dict[str, Kept]]] = {
    "Numbers": _NUMBERS,
    "Dates and times": _TIMES,
    "Texts, bytes and bits": _STRINGS,
    "Network addresses": _NETWORK,
    "Geometry": _GEOMETRIC,
    "Ranges": _RANGES,
    "Of the system": _SYSTEM,
    "Of extensions": _EXTENSIONS,
    "Of your own": _OWN,
}
TYPES: Final[dict[str, Kept]] = {
    name: found for family in FAMILIES.values() for name, found in family.items()
}

_NO_END: Final = frozenset({_UNMARKED, _ABSENT, _ZONES, _CUT})
HARMLESS_IN_ARRAYS: Final = frozenset(
    name
    for name, found in TYPES.items()
    if (found.arrays or found.of_arrays in _NO_END or name in {"timetz", "varbit"})
    and name not in _EXTENSIONS
)
"""What an array is of where no value of it ends the connector, which all other tables need too."""


def kept(name: str) -> Kept:
    """Of a type by its name; one that is not known is the database's own."""
    return TYPES.get(name, TYPES[OTHER])
