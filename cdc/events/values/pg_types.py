"""List what happens to values of each Postgres type on their way through the connector.

The rules were found by sending values of every type through it, by snapshot and by stream. Names
are those of ``pg_type.typname``; a name in parentheses stands for user-defined types.
docs/reference/types.md is generated from this list.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Fidelity(Enum):
    """Says how completely the lake keeps a value."""

    EXACT = "exact"  # in an equivalent lake type
    TEXT = "as text"  # in a string that loses nothing
    REFUSED = "refused"  # not at all: the column is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRule:
    """Describes a type's rule: ``note`` is a refusal's reason or a remark; so is ``of_arrays``."""

    fidelity: Fidelity
    spark: str = "string"
    note: str = ""
    altered: str = ""  # how its text differs from Postgres's own
    caution: str = ""  # a value that arrives as another one
    arrays: bool = False  # whether arrays of one dimension are kept
    of_arrays: str = ""
    can_be_text: bool = False  # whether the operator may choose to keep it as text


LARGEST_BIT: Final = 128
"""The longest ``bit(n)`` that Postgres never stores out of line: such a value always arrives."""

INFINITE_DAYS: Final = {"infinity": 2_146_033_979, "-infinity": -2_147_472_691}
"""The connector's days since 1970 for the two infinite dates."""

NUMBER_WORDS: Final = {
    "NAN": "NaN",
    "POSITIVE_INFINITY": "Infinity",
    "NEGATIVE_INFINITY": "-Infinity",
}
"""Postgres's text by the connector's word for NaN and the infinities of a numeric."""

_OUT_OF_RANGE: Final = "infinity and years outside 1 to 9999 are refused, unless kept as text"
_BITS: Final = "every bit is kept, also of -0 and the infinities; all NaNs are one value"
_UNMARKED: Final = "the connector cannot mark a large one as unchanged"
_NULL_STOPS: Final = "a NULL in one stops the connector"
_NAN_STOPS: Final = "a NaN in one stops the connector"
_CUT: Final = "the connector cuts off their microseconds"
_ABSENT: Final = "the connector does not send them"
_ZONES: Final = "the connector reads them in its worker's time zone and alters those before 1582"
_ERAS: Final = "a BC date in one arrives as AD, and 5 to 14 October 1582 arrive ten days later"
_GEOMETRY: Final = "the connector sends a structure of its own instead of the value"
_CATALOGUE: Final = "its text changes with the catalogue, without an event"
_INTERNAL: Final = "Postgres uses it for its own statistics"
_UNTRIED: Final = "the connector has its own format for this extension, which is untested"
_EMPTY: Final = "the connector sends it empty"
_NUMBER: Final = "as a decimal number, without the currency sign"
_JSON: Final = "as a JSON object"
_INFINITE: Final = "an infinite one arrives as 00:00:00"
_WORKER: Final = "with times in the time zone of the connector's worker, which should be UTC"


def _exact(
    spark: str, note: str = "", *, of_arrays: str = _UNMARKED, can_be_text: bool = False
) -> TypeRule:
    return TypeRule(
        fidelity=Fidelity.EXACT,
        spark=spark,
        note=note,
        of_arrays=of_arrays,
        can_be_text=can_be_text,
    )


def _text(note: str = "", *, of_arrays: str = _NULL_STOPS, altered: str = "") -> TypeRule:
    return TypeRule(fidelity=Fidelity.TEXT, note=note, altered=altered, of_arrays=of_arrays)


def _refused(note: str) -> TypeRule:
    return TypeRule(fidelity=Fidelity.REFUSED, note=note, of_arrays=note)


def _with_arrays(rule: TypeRule, of_arrays: str = "") -> TypeRule:
    return replace(rule, arrays=True, of_arrays=of_arrays)


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
        "a decimal up to 38 digits, with NaN refused unless kept as text; beyond that, or without "
        "a precision, a string with every digit, NaN or Infinity",
        of_arrays=_NAN_STOPS,
        can_be_text=True,
    ),
    "money": _text(_NUMBER, altered=_NUMBER, of_arrays=_ABSENT),
}
_TIMES: Final = {
    "date": _with_arrays(_exact("date", _OUT_OF_RANGE, can_be_text=True), _ERAS),
    "timestamp": _exact("timestamp_ntz", _OUT_OF_RANGE, of_arrays=_ZONES, can_be_text=True),
    "timestamptz": _exact("timestamp", _OUT_OF_RANGE, of_arrays=_ZONES, can_be_text=True),
    "time": _text("including 24:00:00", of_arrays=_CUT),
    "timetz": _refused("the connector sends it in UTC, and as NULL if its offset has seconds"),
    "interval": replace(
        _text(
            f"{_INFINITE}; one longer than 2147483647 hours stops the connector",
            of_arrays=_ABSENT,
        ),
        caution=_INFINITE,
    ),
}
_STRINGS: Final = {
    **dict.fromkeys(("text", "varchar", "uuid", "jsonb"), _with_arrays(_text())),
    "bpchar": _with_arrays(_text("char(n), with its trailing blanks")),
    "json": _with_arrays(_text("exactly as it was written")),
    "char": _text('"char", a single byte', of_arrays=_UNMARKED),
    "name": _text(of_arrays=_ABSENT),
    "bytea": _with_arrays(_exact("binary")),
    "xml": _text(of_arrays=_ABSENT),
    **dict.fromkeys(("jsonpath", "tsvector", "tsquery"), _text()),
    "bit": _text(
        f"bit(n) with n up to {LARGEST_BIT}; the connector cannot mark longer ones as unchanged",
        of_arrays="the connector sends NULL for them, and a NULL in one stops it",
    ),
    "varbit": _refused("the connector pads it to whole bytes, so its length is lost"),
}
_NETWORK: Final = dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), _text(of_arrays=_UNMARKED))
_GEOMETRIC: Final = dict.fromkeys(
    ("point", "line", "lseg", "box", "path", "polygon", "circle"), _refused(_GEOMETRY)
)
_RANGES: Final = {
    name: rule
    for base, note in (
        *dict.fromkeys(("int4", "int8", "num", "ts", "date"), "").items(),
        ("tstz", _WORKER),
    )
    for name, rule in (
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
    COMPOSITE: _text(f"{_WORKER}; an attribute added to the type shows only once the row changes"),
    RANGE: _text(),
    MULTIRANGE: _text(),
    OTHER: _text("as the type's output function writes it"),
}

FAMILIES: Final[dict[str, dict[str, TypeRule]]] = {
    "Numbers": _NUMBERS,
    "Dates and times": _TIMES,
    "Texts, bytes and bits": _STRINGS,
    "Network addresses": _NETWORK,
    "Geometry": _GEOMETRIC,
    "Ranges": _RANGES,
    "System types": _SYSTEM,
    "Types of extensions": _EXTENSIONS,
    "User-defined types": _OWN,
}
TYPES: Final[dict[str, TypeRule]] = {
    name: rule for family in FAMILIES.values() for name, rule in family.items()
}

_NO_END: Final = frozenset({_UNMARKED, _ABSENT, _ZONES, _CUT})
HARMLESS_IN_ARRAYS: Final = frozenset(
    name
    for name, rule in TYPES.items()
    if (rule.arrays or rule.of_arrays in _NO_END or name in {"timetz", "varbit"})
    and name not in _EXTENSIONS
)
"""Element types whose arrays never crash the connector, which serves all other tables too."""


def type_rule(name: str) -> TypeRule:
    """Return the rule for a type; an unknown name counts as a user-defined base type."""
    return TYPES.get(name, TYPES[OTHER])
