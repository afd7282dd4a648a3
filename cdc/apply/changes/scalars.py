"""SQL text that converts one scalar of a decoded event to the lake's type, by its Avro type.

Pure: building the text does not need Spark.
"""

from dataclasses import dataclass
from typing import Any, Final

from cdc.apply.changes import postgres_text
from cdc.apply.changes.intervals import interval
from cdc.events.values.lake_types import PgType, canonical, has_whole_scale
from cdc.events.values.pg_types import TYPES

FIRST_DAY: Final = -719_162  # 0001-01-01, the first day on which all Parquet readers agree
LAST_DAY: Final = 2_932_896  # 9999-12-31
FIRST_MICRO: Final = FIRST_DAY * 86_400_000_000
LAST_MICRO: Final = (LAST_DAY + 1) * 86_400_000_000 - 1
_EPOCH: Final = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_MICRO: Final = "INTERVAL '0 00:00:00.000001' DAY TO SECOND"
_FIRST_INSTANT: Final = "TIMESTAMP'0001-01-01 00:00:00Z'"
_LAST_INSTANT: Final = "TIMESTAMP'9999-12-31 23:59:59.999999Z'"

PRIMITIVES: Final[dict[str, str]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """SQL text of one value; a fallible one is null where the value has no exact form."""

    sql: str
    spark: str  # type of ``sql``
    fallible: bool = False


def cast_to(scalar: Scalar, target: str) -> Scalar:
    """Return the value as the target type; null where it does not fit."""
    if scalar.spark == target:
        return scalar
    return Scalar(f"try_cast({scalar.sql} AS {target})", target, fallible=True)


def as_postgres_text(branch: Any, pg: PgType, raw: str, stored: str) -> Scalar:  # noqa: ANN401
    """Return Postgres's own text of a value, as the lake's type would refuse some values."""
    text_of = _TEXTS.get(_logical(branch))
    if text_of is not None:
        return Scalar(text_of(raw), "string", fallible=True)
    return scalar_of(branch, pg, raw, "string" if canonical(pg.name) == "numeric" else stored)


def scalar_of(branch: Any, pg: PgType, raw: str, stored: str) -> Scalar:  # noqa: ANN401
    """Return a value of the field ``raw`` as the lake's type ``stored``."""
    logical, kind, name = _logical(branch), kind_of(branch), canonical(pg.name)
    if logical in _TEMPORAL:
        return _TEMPORAL[logical](raw)
    if name == "bit":
        return Scalar(_bits(kind, raw, pg.length or 1), "string")
    if kind == "string":
        return cast_to(_string(name, raw, pg, stored, logical), stored)
    if kind == "bytes" and stored == "string":
        return Scalar(f"CAST({raw} AS string)", "string")
    return cast_to(Scalar(raw, PRIMITIVES.get(kind, "?")), stored)


def _string(name: str, raw: str, pg: PgType, stored: str, logical: str) -> Scalar:
    if name == "numeric":
        sql = postgres_text.number(raw, whole=has_whole_scale(pg))
        return (
            Scalar(sql, "string") if stored == "string" else cast_to(Scalar(sql, "string"), stored)
        )
    if name == "interval":
        return Scalar(interval(raw), "string", fallible=True)
    if name not in TYPES and not logical:
        # Perhaps a domain over numeric: then the text may be the connector's word for NaN.
        plain = postgres_text.number(raw, whole=has_whole_scale(pg))
        return Scalar(
            f"IF({postgres_text.special_number(raw)}, NULL, {plain})", "string", fallible=True
        )
    return Scalar(raw, "string")


def _bits(kind: str, raw: str, length: int) -> str:
    if kind == "boolean":
        return f"IF({raw} IS NULL, NULL, IF({raw}, '1', '0'))"
    return postgres_text.bits(raw, length)


def _logical(branch: Any) -> str:  # noqa: ANN401
    return str(branch.get("connect.name", "")) if isinstance(branch, dict) else ""


def kind_of(branch: Any) -> str:  # noqa: ANN401
    """Return the name of an Avro type, such as ``string`` or ``array``."""
    if isinstance(branch, dict):
        return kind_of(branch["type"])
    return str(branch)


def _date(raw: str) -> Scalar:
    inside = f"{raw} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
    return Scalar(f"IF({inside}, date_from_unix_date({raw}), NULL)", "date", fallible=True)


def _micro_timestamp(raw: str) -> Scalar:
    inside = f"{raw} BETWEEN {FIRST_MICRO} AND {LAST_MICRO}"
    return Scalar(f"IF({inside}, {_EPOCH} + {_MICRO} * {raw}, NULL)", "timestamp_ntz", True)  # noqa: FBT003


def _milli_timestamp(raw: str) -> Scalar:
    inside = f"{raw} BETWEEN {FIRST_MICRO // 1000} AND {LAST_MICRO // 1000}"
    sql = f"IF({inside}, {_EPOCH} + {_MICRO} * ({raw} * 1000), NULL)"
    return Scalar(sql, "timestamp_ntz", fallible=True)


def _instant(raw: str) -> Scalar:
    cast = f"try_cast({raw} AS timestamp)"
    sql = f"IF({cast} BETWEEN {_FIRST_INSTANT} AND {_LAST_INSTANT}, {cast}, NULL)"
    return Scalar(sql, "timestamp", fallible=True)


def _micro_time(raw: str) -> Scalar:
    return Scalar(postgres_text.time_of_day(raw), "string")


def _milli_time(raw: str) -> Scalar:
    return _micro_time(f"(CAST({raw} AS bigint) * 1000)")


_TEMPORAL: Final = {
    "io.debezium.time.Date": _date,
    "io.debezium.time.MicroTime": _micro_time,
    "io.debezium.time.Time": _milli_time,
    "io.debezium.time.MicroTimestamp": _micro_timestamp,
    "io.debezium.time.Timestamp": _milli_timestamp,
    "io.debezium.time.ZonedTimestamp": _instant,
}
_TEXTS: Final = {
    "io.debezium.time.Date": postgres_text.date,
    "io.debezium.time.MicroTimestamp": postgres_text.timestamp,
    "io.debezium.time.ZonedTimestamp": postgres_text.instant,
}
