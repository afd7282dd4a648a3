"""Converts one scalar of a decoded event to the lake's type, by its Avro type.

Each entry is a Spark text with its Python beside it. Pure: neither needs Spark.
"""

import re
from datetime import UTC, datetime
from typing import Any, Final

from cdc.apply.changes import postgres_text, postgres_times
from cdc.apply.changes.casts import cast, cast_to
from cdc.apply.changes.conversion import END, Conversion, Scalar, same
from cdc.apply.changes.intervals import INTERVAL
from cdc.events.values.lake_types import PgType, canonical, has_whole_scale
from cdc.events.values.pg_types import TYPES
from cdc.events.values.sql_text import spark_string

FIRST_DAY: Final = -719_162  # 0001-01-01, the first day on which all Parquet readers agree
LAST_DAY: Final = 2_932_896  # 9999-12-31
FIRST_MICRO: Final = FIRST_DAY * 86_400_000_000
LAST_MICRO: Final = (LAST_DAY + 1) * 86_400_000_000 - 1
_SPARK_EPOCH: Final = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO: Final = "INTERVAL '0 00:00:00.000001' DAY TO SECOND"
_FIRST_INSTANT: Final = "TIMESTAMP'0001-01-01 00:00:00Z'"
_LAST_INSTANT: Final = "TIMESTAMP'9999-12-31 23:59:59.999999Z'"
_INSTANT: Final = rf"^\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.]\d{{1,9}})?(?:Z|[+-]\d\d:\d\d){END}"
"""What the connector sends. A cast would also read other forms, and pass over control characters
at both ends: a text whose last byte was changed on the way would be taken for an instant."""
_IS_INSTANT: Final = re.compile(_INSTANT, re.ASCII)

PRIMITIVES: Final[dict[str, str]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}


def as_postgres_text(branch: Any, pg: PgType, raw: str, stored: str) -> Scalar:  # noqa: ANN401
    """Return Postgres's own text of a value, as the lake's type would refuse some values."""
    text = _TEXTS.get(_logical(branch))
    if text is not None:
        return text.over(raw)
    return scalar_of(branch, pg, raw, "string" if canonical(pg.name) == "numeric" else stored)


def scalar_of(branch: Any, pg: PgType, raw: str, stored: str) -> Scalar:  # noqa: ANN401
    """Return a value of the field ``raw`` as the lake's type ``stored``."""
    logical, kind, name = _logical(branch), kind_of(branch), canonical(pg.name)
    if logical in _TEMPORAL:
        return _TEMPORAL[logical].over(raw)
    if name == "bit":
        bits = postgres_text.ONE_BIT if kind == "boolean" else postgres_text.bits(pg.length or 1)
        return bits.over(raw)
    if kind == "string":
        return cast_to(_string(name, pg, logical).over(raw), stored)
    if kind == "bytes" and stored == "string":
        return Scalar(f"CAST({raw} AS string)", "string", cast("binary", "string"))
    return cast_to(Scalar(raw, PRIMITIVES.get(kind, "?"), same), stored)


_AS_IT_IS: Final = Conversion(sql=lambda raw: raw, of=same)


def _string(name: str, pg: PgType, logical: str) -> Conversion:
    if name == "numeric":
        return postgres_text.number(whole=has_whole_scale(pg))
    if name == "interval":
        return INTERVAL
    if name not in TYPES and not logical:
        return postgres_text.perhaps_number(whole=has_whole_scale(pg))
    return _AS_IT_IS


def _logical(branch: Any) -> str:  # noqa: ANN401
    return str(branch.get("connect.name", "")) if isinstance(branch, dict) else ""


def kind_of(branch: Any) -> str:  # noqa: ANN401
    """Return the name of an Avro type, such as ``string`` or ``array``."""
    if isinstance(branch, dict):
        return kind_of(branch["type"])
    return str(branch)


def _date_sql(raw: str) -> str:
    inside = f"{raw} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
    return f"IF({inside}, date_from_unix_date({raw}), NULL)"


def _date_of(days: int) -> int | None:
    return days if FIRST_DAY <= days <= LAST_DAY else None


def _micros_sql(raw: str) -> str:
    inside = f"{raw} BETWEEN {FIRST_MICRO} AND {LAST_MICRO}"
    return f"IF({inside}, {_SPARK_EPOCH} + {_MICRO} * {raw}, NULL)"


def _micros_of(micros: int) -> int | None:
    return micros if FIRST_MICRO <= micros <= LAST_MICRO else None


def _millis_sql(raw: str) -> str:
    inside = f"{raw} BETWEEN {FIRST_MICRO // 1000} AND {LAST_MICRO // 1000}"
    return f"IF({inside}, {_SPARK_EPOCH} + {_MICRO} * ({raw} * 1000), NULL)"


def _millis_of(millis: int) -> int | None:
    return _micros_of(millis * 1000)


def _instant_sql(raw: str) -> str:
    instant = f"try_cast({raw} AS timestamp)"
    is_right = f"{raw} RLIKE {spark_string(_INSTANT)}"
    inside = f"{instant} BETWEEN {_FIRST_INSTANT} AND {_LAST_INSTANT}"
    return f"IF({is_right} AND {inside}, {instant}, NULL)"


def _instant_of(value: str) -> int | None:
    if not _IS_INSTANT.match(value):
        return None
    try:
        since = datetime.fromisoformat(value) - _EPOCH
    except ValueError:
        return None
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return _micros_of(micros)


_TEMPORAL: Final = {
    "io.debezium.time.Date": Conversion(sql=_date_sql, of=_date_of, spark="date", fallible=True),
    "io.debezium.time.MicroTime": postgres_times.TIME_OF_DAY,
    "io.debezium.time.Time": postgres_times.MILLI_TIME_OF_DAY,
    "io.debezium.time.MicroTimestamp": Conversion(
        sql=_micros_sql, of=_micros_of, spark="timestamp_ntz", fallible=True
    ),
    "io.debezium.time.Timestamp": Conversion(
        sql=_millis_sql, of=_millis_of, spark="timestamp_ntz", fallible=True
    ),
    "io.debezium.time.ZonedTimestamp": Conversion(
        sql=_instant_sql, of=_instant_of, spark="timestamp", fallible=True
    ),
}
_TEXTS: Final = {
    "io.debezium.time.Date": postgres_times.DATE,
    "io.debezium.time.MicroTimestamp": postgres_times.TIMESTAMP,
    "io.debezium.time.ZonedTimestamp": postgres_times.INSTANT,
}
