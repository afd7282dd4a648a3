"""From a Postgres type to the type of the lake's column, and from an Avro field to its type.

The connector writes each column's declared type into the Avro schema (``connect.parameters``), so
a log can be read years later without the source. Names of types are Postgres's own, lower case,
an array as ``_element``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SOURCE_TYPE: Final = "__debezium.source.column.type"
SOURCE_LENGTH: Final = "__debezium.source.column.length"
SOURCE_SCALE: Final = "__debezium.source.column.scale"
SOURCE_NAME: Final = "__debezium.source.column.name"

MAX_PRECISION: Final = 38
"""Of a Delta decimal; a wider numeric is kept as its text."""


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


_SAME: Final[dict[str, str]] = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "oid": "bigint",
    "float4": "float",
    "float8": "double",
    "bytea": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
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
_OTHER_TEXT: Final[dict[str, str]] = {
    "timetz": "the connector gives it in UTC: its own offset is lost",
    "money": "kept as a number's text, without the currency sign",
    "hstore": "kept as JSON",
}
_GEOMETRY: Final = "the connector gives it in a form of its own"
_REFUSED: Final[dict[str, str]] = {
    "bit": "only bit(1) is kept",
    "varbit": "the connector pads it to whole bytes: its length is lost",
    "record": "it has parts",
    "map": "it has parts",
    **dict.fromkeys(
        ("point", "line", "lseg", "box", "path", "polygon", "circle", "geometry", "geography"),
        _GEOMETRY,
    ),
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
_LOGICAL: Final[dict[str, str]] = {
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.Timestamp": "timestamp",
    "io.debezium.time.MicroTimestamp": "timestamp",
    "io.debezium.time.ZonedTimestamp": "timestamptz",
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
        inner = lake_type(element)
        return LakeType(
            spark=f"array<{inner.spark}>",
            exact=inner.exact,
            reason=inner.reason,
            refused=inner.refused or element.element is not None,
        )
    name = canonical(pg.name)
    if name in _SAME:
        return LakeType(spark=_SAME[name])
    if name == "numeric":
        return _numeric(pg)
    if name == "bit" and (pg.length or 1) == 1:
        return LakeType(spark="string")
    if name in _REFUSED:
        return LakeType(spark="string", exact=False, reason=_REFUSED[name], refused=True)
    return LakeType(spark="string", exact=name not in _OTHER_TEXT, reason=_OTHER_TEXT.get(name, ""))


def _numeric(pg: PgType) -> LakeType:
    precision, scale = pg.length or 0, pg.scale or 0
    if 0 < precision <= MAX_PRECISION and 0 <= scale <= precision:
        return LakeType(spark=f"decimal({precision},{scale})")
    return LakeType(spark="string")


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

    A name that means nothing to us (an enum, a domain) is replaced by what the bytes are.
    """
    noted = parameters(field["type"])
    declared = canonical(noted.get(SOURCE_TYPE, ""))
    length, scale = (_number(noted.get(key)) for key in (SOURCE_LENGTH, SOURCE_SCALE))
    physical = _physical(branches(field["type"])[0])
    known = declared.removeprefix("_")
    if known in _SAME or known == "numeric" or physical in {"text", "_text"}:
        return PgType(declared or physical, length, scale)
    return PgType(declared if known in {*_REFUSED, "bit", "time"} else physical, length, scale)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _physical(branch: Any) -> str:  # noqa: ANN401
    if isinstance(branch, str):
        return _PHYSICAL.get(branch, branch)
    if branch["type"] == "array":
        return "_" + _physical(branches(branch["items"])[0])
    logical = _LOGICAL.get(branch.get("connect.name", ""))
    return logical or _physical(branch["type"])
