"""Decide which source columns arrive in the lake, and with which type.

Not every Postgres type survives the connector: ``cdc/events/values/pg_types.py`` lists those that
do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.config.masks import DROP
from cdc.events.values.lake_types import PgType, can_be_text, canonical, lake_type
from cdc.events.values.pg_types import (
    COMPOSITE,
    ENUM,
    HARMLESS_IN_ARRAYS,
    LARGEST_BIT,
    MULTIRANGE,
    OTHER,
    RANGE,
    TYPES,
    type_rule,
)

_HEADER: Final = 4  # Postgres adds it to the length of varchar, char and numeric
_MOVED: Final = {"int2": "int4", "oid": "int8"}
"""Base types of domains that the connector's Avro schema shows as a wider type.

A domain is declared under its own name, so only the Avro type tells its base type.
"""

_OWN_KINDS: Final = {"e": ENUM, "c": COMPOSITE, "r": RANGE, "m": MULTIRANGE}
_DOMAINS_LOST: Final = {
    "bytea": "the connector writes a domain over bytea like the text of an unknown type",
    "bit": "the connector writes a domain over bit(1) like a boolean",
}
_UNMARKED: Final = "the connector cannot mark a large value as unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredType:
    """Holds a column's type as the catalogue declares it; domains are resolved to their base."""

    name: str  # pg_type.typname; for a domain, that of the innermost base type
    kind: str  # pg_type.typtype of ``name``: b base, e enum, c composite, r range, m multirange
    modifier: int = -1  # atttypmod; for a domain, that of the innermost domain
    element: str = ""  # pg_type.typname of an array's element
    element_kind: str = ""
    domain: str = ""  # the domain's own name
    dimensions: int = 0

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "DeclaredType":
        """Return the type in what the catalogue, or a note, says of a column (``DECLARED``)."""
        return cls(
            name=facts["type"],
            kind=facts["kind"],
            modifier=facts["modifier"],
            element=facts["element"],
            element_kind=facts["element_kind"],
            domain=facts["domain"],
            dimensions=facts["dimensions"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """Describes a column of a captured table: ``type`` is its lake type, ``pg`` its source type."""

    name: str
    type: str
    pg: PgType
    not_null: bool
    arrives: bool
    reason: str = ""
    """Why the column does not arrive, or what is lost of its values."""
    mask: str = ""
    """What ``source.columns`` does to its values (cdc/config/masks.py); empty: nothing."""
    number: int = 0
    """Its pg_attribute.attnum, which a rename does not change; 0 if it is not known."""

    def masked_by(self, mask: str) -> "SourceColumn":
        """Return this column, which arrives, with a mask; a dropped one does not arrive."""
        if mask != DROP:
            return replace(self, mask=mask)
        return replace(self, mask=mask, arrives=False, reason="source.columns drops it")

    @property
    def is_text(self) -> bool:
        """Return whether the operator chose to keep this column as text."""
        return self.type == "string" and lake_type(self.pg).spark != "string"

    @property
    def can_be_text(self) -> bool:
        """Return whether the operator may choose to keep this column as text."""
        return self.arrives and can_be_text(self.pg)

    def as_text(self) -> "SourceColumn":
        """Return this column kept as the text that Postgres writes."""
        return replace(self, type="string")


def source_column(
    name: str, declared: DeclaredType, *, not_null: bool, generated: bool
) -> SourceColumn:
    """Decide how a column with this declared type arrives in the lake, if it does."""
    pg = _pg_type(declared)
    kind = lake_type(pg)
    refusal = "Postgres does not publish generated columns" if generated else _refusal(declared)
    return SourceColumn(
        name=name,
        type=kind.spark,
        pg=pg,
        not_null=not_null,
        arrives=not refusal,
        reason=refusal or kind.reason,
    )


def may_end_connector(declared: DeclaredType) -> bool:
    """Return whether some values of the type crash the connector unless it excludes the column.

    The SQL function ``leave_out_unreadable`` in cdc/source/notes/leave_out.py has the same rule.
    """
    return bool(declared.element) and declared.element not in HARMLESS_IN_ARRAYS


def _refusal(declared: DeclaredType) -> str:
    """Return why a column cannot arrive, or an empty text if it arrives."""
    own = declared.domain or (declared.name if declared.kind in _OWN_KINDS else "")
    built_in = declared.kind in {"r", "m"} and declared.name in TYPES and not declared.domain
    if canonical(own) in TYPES and not built_in:
        return f"its type shares its name with a type of Postgres or an extension: {own}"
    if declared.element and declared.name not in TYPES:
        return _array_refusal(declared)
    base = type_rule(_known_name(declared))
    if base.fidelity is base.fidelity.REFUSED:
        return base.note
    return _domain_refusal(declared) or _bit_refusal(declared)


def _array_refusal(declared: DeclaredType) -> str:
    if declared.dimensions > 1:
        return "the connector sends no arrays of more than one dimension"
    if declared.domain:
        return _UNMARKED
    name = canonical(declared.element)
    element = type_rule(name if name in TYPES else _OWN_KINDS.get(declared.element_kind, OTHER))
    return "" if element.arrays else f"arrays of {declared.element}: {element.of_arrays}"


def _domain_refusal(declared: DeclaredType) -> str:
    if not declared.domain or (declared.name == "bit" and _bits(declared) > 1):
        return ""
    return _DOMAINS_LOST.get(declared.name, "")


def _bit_refusal(declared: DeclaredType) -> str:
    return _UNMARKED if declared.name == "bit" and _bits(declared) > LARGEST_BIT else ""


def _bits(declared: DeclaredType) -> int:
    return max(declared.modifier, 1)


def _known_name(declared: DeclaredType) -> str:
    name = canonical(declared.name)
    if name in TYPES:
        return name
    return _OWN_KINDS.get(declared.kind, OTHER)


def _pg_type(declared: DeclaredType) -> PgType:
    """Return the type as the connector's Avro shows it, so that catalogue and log agree."""
    name = f"_{declared.element}" if declared.element else declared.name
    length, scale = _length(declared.element or declared.name, declared.modifier)
    if declared.domain and not declared.element:
        name = declared.domain if name == "numeric" else _MOVED.get(name, name)
    return PgType(canonical(name), length, scale)


def _length(base: str, modifier: int) -> tuple[int | None, int | None]:
    """Return (precision, scale) or (length, None) from a type modifier."""
    if modifier < 0:
        return None, None
    if base == "numeric":
        packed = modifier - _HEADER
        return packed >> 16 & 0xFFFF, ((packed & 0x7FF) ^ 0x400) - 0x400
    if base in {"varchar", "bpchar"}:
        return modifier - _HEADER, None
    return modifier, None
