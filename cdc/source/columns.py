"""Which columns of the source arrive in the lake, and as what.

Not every type that Postgres knows survives the connector. What does was found by sending a value
of every type through the real chain, by snapshot and by stream (tests/data/events).
"""

from dataclasses import dataclass
from typing import Final

from cdc.events.types import PgType, canonical, lake_type

_HEADER: Final = 4  # added by Postgres to the length of varchar, char and numeric
_MOVED: Final = {"int2": "int4", "oid": "int8"}
"""A domain is declared by its own name, so only the Avro type tells what it is over."""

_NUMBERS: Final = ("bool", "int2", "int4", "int8", "float4", "float8", "numeric")
_TEXTS: Final = ("text", "varchar", "bpchar", "json", "jsonb", "uuid", "inet", "cidr", "bytea")
_TIMES: Final = ("date", "time", "timestamp", "timestamptz")
_RANGES: Final = ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange")
_SCALAR_ONLY: Final = ("oid", "money", "char", "citext", "timetz", "interval", "hstore", "xml")

ARRIVES: Final = frozenset(
    {*_NUMBERS, *_TEXTS, *_TIMES, *_RANGES, *_SCALAR_ONLY, "tsvector", "bit", "macaddr"}
)
"""Base types whose values arrive by snapshot and by stream."""

_ARRAYS: Final = frozenset(
    ("text", "varchar", "bpchar", "json", "jsonb", "uuid", "bytea", "int4", "int8", "date")
)
"""Of other arrays the connector sends a large value that did not change as NULL, which nothing
tells from a real NULL."""

_WHY_NOT: Final = {
    "name": "the connector sends it in the snapshot only",
    "point": "the connector sends a structure, not the value",
}
_UNCHANGED: Final = "the connector sends a large value that did not change as NULL"
_PLAIN_IN_DOMAIN: Final = frozenset({*_NUMBERS, *_TIMES, "oid", "bytea"}) - {"numeric", "timetz"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredType:
    """A column's type as the catalogue has it."""

    name: str  # pg_type.typname; of a domain the type it is over
    kind: str  # pg_type.typtype: b base, e enum, d domain, c composite, r range, m multirange
    modifier: int = -1  # atttypmod; of a domain its own
    element: str = ""  # of an array the element's name
    element_kind: str = ""
    domain: str = ""  # the domain's own name
    dimensions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column of a captured table; ``type`` is the lake's, ``pg`` the source's."""

    name: str
    type: str
    pg: PgType
    not_null: bool
    arrives: bool
    reason: str = ""
    """Why it does not arrive, or what of it is lost."""


def source_column(
    name: str, declared: DeclaredType, *, not_null: bool, generated: bool
) -> SourceColumn:
    pg = _pg_type(declared)
    kind = lake_type(pg)
    refusal = _refusal(declared, generated=generated) or (
        (kind.reason or "its type cannot be kept") if kind.refused else ""
    )
    return SourceColumn(
        name=name,
        type=kind.spark,
        pg=pg,
        not_null=not_null,
        arrives=not refusal,
        reason=refusal or kind.reason,
    )


def _refusal(declared: DeclaredType, *, generated: bool) -> str:
    """Why a column cannot arrive; empty when it does."""
    if generated:
        return "Postgres does not publish generated columns"
    if declared.element:
        return _array_refusal(declared)
    if declared.kind == "e" or declared.name in ARRIVES:
        return ""
    return _WHY_NOT.get(declared.name, f"the connector does not send type {declared.name}")


def _array_refusal(declared: DeclaredType) -> str:
    if declared.dimensions > 1:
        return "the connector garbles arrays of more than one dimension"
    if declared.kind == "d":
        return "the connector does not send domains over arrays"
    if declared.element in _ARRAYS:
        return ""
    known = declared.element in ARRIVES or declared.element_kind == "e"
    return _UNCHANGED if known else f"the connector does not send arrays of {declared.element}"


def _pg_type(declared: DeclaredType) -> PgType:
    """As the connector declares it in Avro, so that catalogue and log agree on the lake's type."""
    name = f"_{declared.element}" if declared.element else declared.name
    base = declared.element or declared.name
    length, scale = _length(base, declared.modifier)
    if declared.domain:
        plain = declared.name in _PLAIN_IN_DOMAIN
        name = _MOVED.get(declared.name, declared.name) if plain else declared.domain
    return PgType(canonical(name), length, scale)


def _length(base: str, modifier: int) -> tuple[int | None, int | None]:
    """Precision and scale, or length, from a type modifier."""
    if modifier < 0:
        return None, None
    if base == "numeric":
        packed = modifier - _HEADER
        return packed >> 16 & 0xFFFF, ((packed & 0x7FF) ^ 0x400) - 0x400
    if base in {"varchar", "bpchar"}:
        return modifier - _HEADER, None
    return modifier, None
