"""From a Postgres type to the type of the lake's column, and from an Avro field to its type.

The connector writes each column's declared type into the Avro schema (``connect.parameters``), so
a log can be read years later without the source. Names of types are Postgres's own, lower case,
an array as ``_element``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cdc.events.values.pg_types import OTHER, TYPES, Fidelity, kept

SOURCE_TYPE: Final = "__debezium.source.column.type"
SOURCE_LENGTH: Final = "__debezium.source.column.length"
SOURCE_SCALE: Final = "__debezium.source.column.scale"
SOURCE_NAME: Final = "__debezium.source.column.name"

MAX_PRECISION: Final = 38
"""Of a Delta decimal; a wider numeric is kept as its text."""

_SCALES: Final = 2048


@dataclass(frozen=True, slots=True)
class PgType:
    """A column's type: ``length`` is the precision of a numeric, None or 0 where there is none."""

    name: str
    length: int | None = None
    scale: int | None = None

    @property
    def element(self) -> "PgType | None":
        """The type of an array's elements; None for a scalar."""
        return PgType(self.name[1:], self.length, self.scale) if self.name[:1] == "_" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeType:
    """What the lake keeps: ``spark`` is DDL text; ``reason`` says why it is not ``exact``."""

    spark: str
    exact: bool = True
    reason: str = ""
    refused: bool = False  # no value of this type can be kept at all


_ALIASES: Final[dict[str, str]] = {
    "boolean": "bool",
    "smallserial": "int2",
    "serial2": "int2",
    "smallint": "int2",
    "serial": "int4",
    "serial4": "int4",
    "integer": "int4",
    "int": "int4",
    "bigserial": "int8",
    "serial8": "int8",
    "bigint": "int8",
    "real": "float4",
    "double precision": "float8",
    "decimal": "numeric",
    "character varying": "varchar",
    "character": "bpchar",
}
_PHYSICAL: Final[dict[str, str]] = {
    "boolean": "bool",
    "int": "int4",
    "long": "int8",
    "float": "float4",
    "double": "float8",
    "bytes": "bytea",
    "string": "text",
}
_FORMS: Final[dict[str, str]] = {
    **{name: name for name in ("bool", "int4", "int8", "float4", "float8", "bytea")},
    **{name: name for name in ("date", "time", "timestamp", "timestamptz")},
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid", "json", "jsonb", "numeric"), "text"),
    "int2": "int4",
}
"""What the connector makes of the commonest types: each has one form only."""
_LOGICAL: Final[dict[str, str]] = {
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.Timestamp": "timestamp",
    "io.debezium.time.MicroTimestamp": "timestamp",
    "io.debezium.time.ZonedTimestamp": "timestamptz",
    "io.debezium.time.ZonedTime": "timetz",
    "io.debezium.time.Interval": "interval",
    "io.debezium.data.Bits": "bit",
    "io.debezium.data.geometry.Point": "point",
    "io.debezium.data.geometry.Line": "line",
    "io.debezium.data.geometry.Circle": "circle",
    "io.debezium.data.geometry.Geometry": "path",
}


def canonical(name: str) -> str:
    """One spelling per type: ``serial`` and ``INTEGER`` are ``int4``."""
    lower = name.lower()
    if lower.startswith("_"):
        return "_" + canonical(lower[1:])
    return _ALIASES.get(lower, lower)


def lake_type(pg: PgType) -> LakeType:
    """The Delta type that holds every value of ``pg``; text where no other type does."""
    element = pg.element
    if element is not None:
        return _array(element)
    name = canonical(pg.name)
    found = kept(name)
    if found.fidelity is Fidelity.REFUSED:
        return LakeType(spark="string", exact=False, reason=found.note, refused=True)
    return LakeType(
        spark=_numeric(pg) if name == "numeric" else found.spark,
        exact=not found.altered,
        reason=found.altered or found.caution,
    )


def _array(element: PgType) -> LakeType:
    inner = lake_type(element)
    found = kept(canonical(element.name))
    spark = f"array<{inner.spark}>"
    if element.element is not None:
        return LakeType(spark=spark, exact=False, reason="an array of arrays", refused=True)
    return LakeType(
        spark=spark, exact=found.arrays, reason=found.of_arrays, refused=not found.arrays
    )


def _numeric(pg: PgType) -> str:
    """A negative scale leaves zeros before the point, one above the precision zeros behind it."""
    precision, scale = pg.length or 0, _signed(pg.scale or 0)
    digits = precision - scale if scale < 0 else max(precision, scale)
    if not precision or digits > MAX_PRECISION:
        return "string"
    return f"decimal({digits},{max(scale, 0)})"


def can_be_text(pg: PgType) -> bool:
    """Whether the operator may have Postgres's own text of it instead."""
    return kept(canonical(pg.name)).can_be_text


def has_whole_scale(pg: PgType) -> bool:
    """A numeric that is rounded to tens, hundreds and so on."""
    return _signed(pg.scale or 0) < 0


def _signed(scale: int) -> int:
    """The connector takes the eleven bits that Postgres stores a scale in for a positive one."""
    return scale - _SCALES if scale >= _SCALES // 2 else scale


def branches(avro_type: Any) -> list[Any]:  # noqa: ANN401 - Avro schemas are JSON
    """The non-null branches of a field's type."""
    union = avro_type if isinstance(avro_type, list) else [avro_type]
    return [branch for branch in union if branch != "null"]


def parameters(avro_type: Any) -> Mapping[str, str]:  # noqa: ANN401
    """The connector's notes on a field: declared type, length, scale, name."""
    for branch in branches(avro_type):
        if isinstance(branch, dict) and "connect.parameters" in branch:
            noted: Mapping[str, str] = branch["connect.parameters"]
            return noted
    return {}


def from_avro_field(field: Mapping[str, Any]) -> PgType:
    """The declared type of a column, from the Avro field that carries it.

    The name of a domain or an enum means nothing here, so the bytes say what it is over. Bytes
    under such a name are the text of a type that the connector does not know.

    The connector reads the name in the catalogue when the event passes: where the column's type
    changed, that may be a moment too early or too late, and the form of the value is right.
    """
    noted = parameters(field["type"])
    declared = canonical(noted.get(SOURCE_TYPE, ""))
    length, scale = (_number(noted.get(key)) for key in (SOURCE_LENGTH, SOURCE_SCALE))
    physical = _physical(branches(field["type"])[0])
    if declared.removeprefix("_") not in TYPES:
        declared = _of_own_type(declared, physical)
    elif physical in _FORMS and _FORMS.get(declared, physical) != physical:
        declared = physical
    return PgType(declared, length, scale)


def _of_own_type(declared: str, physical: str) -> str:
    if not declared:
        return physical
    if physical == "bytea":
        return OTHER
    is_array = declared.startswith("_") and physical.startswith("_")
    return declared if physical == "text" or is_array else physical


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _physical(branch: Any) -> str:  # noqa: ANN401
    if isinstance(branch, str):
        return _PHYSICAL.get(branch) or _LOGICAL.get(branch, branch)
    if branch["type"] == "array":
        return "_" + _physical(branches(branch["items"])[0])
    logical = _LOGICAL.get(branch.get("connect.name", ""))
    return logical or _physical(branch["type"])
