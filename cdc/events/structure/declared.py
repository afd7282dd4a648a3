"""Which columns of the source arrive in the lake, and as what.

Not every type of Postgres survives the connector: ``cdc/events/values/pg_types.py`` has those
that do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

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
    kept,
)

_HEADER: Final = 4  # added by Postgres to the length of varchar, char and numeric
_MOVED: Final = {"int2": "int4", "oid": "int8"}
"""A domain is declared by its own name, so only the Avro type tells what it is over."""

_OWN_KINDS: Final = {"e": ENUM, "c": COMPOSITE, "r": RANGE, "m": MULTIRANGE}
_DOMAINS_LOST: Final = {
    "bytea": "the connector writes a domain over it like the text of a type it does not know",
    "bit": "the connector writes a domain over bit(1) like a boolean",
}
_UNMARKED: Final = "the connector cannot say that a large value did not change"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredType:
    """A column's type as the catalogue has it."""

    name: str  # pg_type.typname; of a domain the type it is over, through other domains
    kind: str  # pg_type.typtype of that: b base, e enum, c composite, r range, m multirange
    modifier: int = -1  # atttypmod; of a domain that of the innermost one
    element: str = ""  # of an array the element's name
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
    """A column of a captured table; ``type`` is the lake's, ``pg`` the source's."""

    name: str
    type: str
    pg: PgType
    not_null: bool
    arrives: bool
    reason: str = ""
    """Why it does not arrive, or what of it is lost."""

    @property
    def is_text(self) -> bool:
        """By the operator's choice."""
        return self.type == "string" and lake_type(self.pg).spark != "string"

    @property
    def can_be_text(self) -> bool:
        return self.arrives and can_be_text(self.pg)

    def as_text(self) -> "SourceColumn":
        """In the lake as Postgres writes it."""
        return replace(self, type="string")


def source_column(
    name: str, declared: DeclaredType, *, not_null: bool, generated: bool
) -> SourceColumn:
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
    """Whether the connector ends at some values of the type, where it is not told to leave it out.

    As ``leave_out_unreadable`` in cdc/source/notes/sql.py sees it.
    """
    return bool(declared.element) and declared.element not in HARMLESS_IN_ARRAYS


def _refusal(declared: DeclaredType) -> str:
    """Why a column cannot arrive; empty when it does."""
    own = declared.domain or (declared.name if declared.kind in _OWN_KINDS else "")
    built_in = declared.kind in {"r", "m"} and declared.name in TYPES and not declared.domain
    if canonical(own) in TYPES and not built_in:
        return f"its type has the name of another one: {own}"
    if declared.element and declared.name not in TYPES:
        return _array_refusal(declared)
    found = kept(_known_name(declared))
    if found.fidelity is found.fidelity.REFUSED:
        return found.note
    return _domain_refusal(declared) or _bit_refusal(declared)


def _array_refusal(declared: DeclaredType) -> str:
    if declared.dimensions > 1:
        return "the connector sends no array of more than one dimension"
    if declared.domain:
        return _UNMARKED
    name = canonical(declared.element)
    found = kept(name if name in TYPES else _OWN_KINDS.get(declared.element_kind, OTHER))
    return "" if found.arrays else f"arrays of {declared.element}: {found.of_arrays}"


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
    """As the connector's Avro tells it, so that catalogue and log agree on the lake's type."""
    name = f"_{declared.element}" if declared.element else declared.name
    length, scale = _length(declared.element or declared.name, declared.modifier)
    if declared.domain and not declared.element:
        name = declared.domain if name == "numeric" else _MOVED.get(name, name)
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
