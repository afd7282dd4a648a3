"""Map a Postgres type to the lake column's type, and an Avro field to its Postgres type.

The connector writes each column's declared type into the Avro schema (``connect.parameters``), so
the log can be read years later without the source. Types have Postgres's own names in lower case;
an array is ``_element``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cdc.events.values.pg_types import OTHER, TYPES, Fidelity, type_rule

SOURCE_TYPE: Final = "__debezium.source.column.type"
SOURCE_LENGTH: Final = "__debezium.source.column.length"
SOURCE_SCALE: Final = "__debezium.source.column.scale"
SOURCE_NAME: Final = "__debezium.source.column.name"

MAX_PRECISION: Final = 38
"""The most digits of a Delta decimal; a wider numeric is kept as text."""

_SCALES: Final = 2048


@dataclass(frozen=True, slots=True)
class PgType:
    """Describes a column's type; ``length`` is a numeric's precision, None or 0 if it has none."""

    name: str
    length: int | None = None
    scale: int | None = None

    @property
    def element(self) -> "PgType | None":
        """Return the type of an array's elements; None for a scalar."""
        return PgType(self.name[1:], self.length, self.scale) if self.name[:1] == "_" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeType:
    """Describes the lake's type: ``spark`` is DDL text; ``reason`` says what is lost, and why."""

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
"""The connector's form of the most common types, which have only one form each."""
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
    """Return the one spelling of a type's name: ``int4`` for ``serial`` and ``INTEGER``."""
    lower = name.lower()
    if lower.startswith("_"):
        return "_" + canonical(lower[1:])
    return _ALIASES.get(lower, lower)


def lake_type(pg: PgType) -> LakeType:
    """Return the Delta type that holds every value of ``pg``; text if no other type does."""
    element = pg.element
    if element is not None:
        return _array(element)
    name = canonical(pg.name)
    rule = type_rule(name)
    if rule.fidelity is Fidelity.REFUSED:
        return LakeType(spark="string", exact=False, reason=rule.note, refused=True)
    return LakeType(
        spark=_numeric(pg) if name == "numeric" else rule.spark,
        exact=not rule.altered,
        reason=rule.altered or rule.caution,
    )


def _array(element: PgType) -> LakeType:
    inner = lake_type(element)
    rule = type_rule(canonical(element.name))
    spark = f"array<{inner.spark}>"
    if element.element is not None:
        return LakeType(spark=spark, exact=False, reason="an array of arrays", refused=True)
    return LakeType(spark=spark, exact=rule.arrays, reason=rule.of_arrays, refused=not rule.arrays)


def _numeric(pg: PgType) -> str:
    """Return the type of a numeric.

    A negative scale means zeros before the point; one above the precision, zeros after it.
    """
    precision, scale = pg.length or 0, _signed(pg.scale or 0)
    digits = precision - scale if scale < 0 else max(precision, scale)
    if not precision or digits > MAX_PRECISION:
        return "string"
    return f"decimal({digits},{max(scale, 0)})"


def can_be_text(pg: PgType) -> bool:
    """Return whether the operator may choose to keep the type as Postgres's own text."""
    return type_rule(canonical(pg.name)).can_be_text


def has_whole_scale(pg: PgType) -> bool:
    """Return whether the type is a numeric rounded to tens, hundreds and so on."""
    return _signed(pg.scale or 0) < 0


def _signed(scale: int) -> int:
    """Return the scale with its sign.

    The connector reads the eleven bits in which Postgres stores a scale as an unsigned number.
    """
    return scale - _SCALES if scale >= _SCALES // 2 else scale


def branches(avro_type: Any) -> list[Any]:  # noqa: ANN401 - Avro schemas are JSON
    """Return the non-null branches of a field's type."""
    union = avro_type if isinstance(avro_type, list) else [avro_type]
    return [branch for branch in union if branch != "null"]


def parameters(avro_type: Any) -> Mapping[str, str]:  # noqa: ANN401
    """Return the connector's parameters of a field: declared type, length, scale, name."""
    for branch in branches(avro_type):
        if isinstance(branch, dict) and "connect.parameters" in branch:
            by_name: Mapping[str, str] = branch["connect.parameters"]
            return by_name
    return {}


def from_avro_field(field: Mapping[str, Any]) -> PgType:
    """Return a column's declared type from its Avro field.

    The name of a domain or an enum is unknown here, so the Avro type shows its base type. Avro
    bytes under such a name are the text of a type that the connector does not know.

    The connector looks the name up in the catalogue when the event passes. If the column's type
    changed, that may be slightly too early or too late; then the form of the value is right.
    """
    declared_as = parameters(field["type"])
    declared = canonical(declared_as.get(SOURCE_TYPE, ""))
    length, scale = (_number(declared_as.get(key)) for key in (SOURCE_LENGTH, SOURCE_SCALE))
    physical = _physical(branches(field["type"])[0])
    if declared.removeprefix("_") not in TYPES:
        declared = _user_defined(declared, physical)
    elif physical in _FORMS and _FORMS.get(declared, physical) != physical:
        declared = physical
    return PgType(declared, length, scale)


def _user_defined(declared: str, physical: str) -> str:
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
