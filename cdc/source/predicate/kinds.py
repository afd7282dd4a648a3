"""Define which columns a predicate may compare: those where Postgres and Spark always agree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cdc.events.structure.declared import SourceColumn
from cdc.events.values.pg_types import TYPES
from cdc.source.predicate import constants
from cdc.source.predicate.constants import Constant
from cdc.source.predicate.texts import Texts

_COLLATED: Final = "the order of strings depends on Postgres's collation"
_NUMBERS: Final = frozenset({"number", "string"})
_INTEGER_CASTS: Final = frozenset({"SMALLINT", "INT", "BIGINT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Says how columns of a type are compared."""

    name: str  # of its constants in messages, such as "an integer"
    read: Callable[[Constant, SourceColumn], Texts | None]  # None: not such a constant
    casts: frozenset[str]  # types a constant may be cast to, by sqlglot's names
    forms: frozenset[str] = frozenset({"string"})
    unordered: str = ""  # why < and > are refused
    source: str = "{}"  # the column's name in a comparison, for Postgres
    lake: str = "{}"  # the same for Spark
    collated: bool = False  # equality needs a deterministic collation to mean equal bytes
    patterns: bool = False  # allows LIKE
    divisible: bool = False  # allows %
    apart: bool = False  # Spark's IN differs from a chain of its =


_INTEGER: Final = Kind(
    name="an integer",
    read=constants.an_integer,
    casts=_INTEGER_CASTS,
    forms=_NUMBERS,
    divisible=True,
)
_OID: Final = Kind(
    name="an integer from 0 to 4294967295",
    read=constants.an_oid,
    casts=_INTEGER_CASTS,
    forms=_NUMBERS,
    source="CAST({} AS pg_catalog.int8)",
)
_TEXT: Final = Kind(
    name="a string",
    read=constants.a_text,
    casts=frozenset({"TEXT", "VARCHAR"}),
    unordered=_COLLATED,
    collated=True,
    patterns=True,
)
_FLOAT: Final = Kind(
    name="a floating-point number of the column's size",
    read=constants.a_float,
    casts=frozenset({"FLOAT", "DOUBLE"}),
    forms=_NUMBERS,
    # Not the plain column, so that Spark skips file statistics, which know neither -0 nor NaN.
    lake="(CAST({} AS DOUBLE) + 0.0D)",
    apart=True,
)
_LABEL: Final = Kind(
    name="a label",
    read=constants.a_label,
    casts=frozenset(),
    unordered="the lake does not know the order of the enum's labels",
)
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("int2", "int4", "int8"), _INTEGER),
    "oid": _OID,
    "float4": _FLOAT,
    "float8": _FLOAT,
    "text": _TEXT,
    "varchar": _TEXT,
    "numeric": Kind(
        name="a number with at most as many decimals as the column",
        read=constants.a_decimal,
        casts=frozenset({"DECIMAL"}),
        forms=_NUMBERS,
    ),
    "bool": Kind(
        name="true or false",
        read=constants.a_boolean,
        casts=frozenset({"BOOLEAN"}),
        forms=frozenset({"boolean", "string"}),
    ),
    "date": Kind(
        name="a date like '2026-01-31', from year 1 to 9999",
        read=constants.a_date,
        casts=frozenset({"DATE"}),
    ),
    "timestamp": Kind(
        name="a timestamp like '2026-01-31 12:00:00', without a zone, from year 1 to 9999",
        read=constants.a_timestamp,
        casts=frozenset({"TIMESTAMP", "TIMESTAMPNTZ", "DATE"}),
    ),
    "timestamptz": Kind(
        name="a timestamp with an offset, like '2026-01-31 12:00:00+00', from year 1 to 9999",
        read=constants.an_instant,
        casts=frozenset({"TIMESTAMPTZ"}),
    ),
    "bpchar": Kind(
        name="a string",
        read=constants.a_padded_text,
        casts=frozenset({"BPCHAR"}),
        unordered=_COLLATED,
        lake="rtrim({})",
        collated=True,
    ),
    "uuid": Kind(name="a UUID with hyphens", read=constants.a_uuid, casts=frozenset({"UUID"})),
}


def kind_of(column: SourceColumn, *, is_enum: bool) -> Kind | str:
    """Return how the column is compared, or a message saying why it cannot be."""
    name = column.pg.name
    if column.mask:
        return "source.columns masks its values in the lake"
    if column.is_text:
        return f"the lake stores it as text, but it is {name} in Postgres"
    if is_enum:
        return _LABEL
    if name == "numeric" and column.type == "string":
        return "the lake stores a numeric without a precision, or with a large one, as text"
    return _KINDS.get(name, f"Postgres and Spark compare values of type {name} differently")


def is_own(column: SourceColumn) -> bool:
    """Return whether the column has a user-defined type, which may be composite."""
    return column.pg.element is None and column.pg.name not in TYPES
