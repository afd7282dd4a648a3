"""Define the tables whose values each entry of the allow-list is evaluated on."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

import duckdb

from cdc.source.server.connection import Connection
from tests.source.derive.text_cases import PAIRS

COLUMNS: Final = {
    "id": "integer",
    "i": "smallint",
    "n": "integer",
    "b": "bigint",
    "d": "numeric(38,10)",
    "e": "numeric(10,2)",
    "f": "double precision",
    "t": "text",
    "u": "text",
    "dt": "date",
    "ts": "timestamp",
    "tz": "timestamptz",
    "o": "boolean",
}
TEXTS: Final = ("t", "u", "digits", "moment")
SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    "SET default_null_order = 'nulls_last_on_asc_first_on_desc'",
)


def _at(*parts: int) -> tuple[date, datetime, datetime]:
    moment = datetime(*parts)  # type: ignore[arg-type] # noqa: DTZ001 - a timestamp has no zone
    return moment.date(), moment, moment.replace(tzinfo=UTC)


NAN: Final = float("nan")
ROWS: Final = [
    (1, None, None, None, None, None, None, None, None, None, None, None, None),
    (2, 0, 0, 0, Decimal(0), Decimal(0), 0.0, "", "", *_at(1970, 1, 1), True),
    (3, 1, 1, 1, Decimal("0.0000000001"), Decimal("0.01"), -0.0, "a", "A", *_at(2024, 2, 29),
    False),
    (4, -1, -1, -1, Decimal("-1.5"), Decimal("-0.01"), NAN, "B", "b", *_at(1969, 12, 31, 23, 59,
    59, 500_000), True),
    (5, 32767, 2**31 - 1, 2**63 - 1, Decimal("9999999999999999999999999999.9999999999"),
    Decimal("99999999.99"), 1.7976931348623157e308, "é", "e", *_at(9998, 12, 31, 23, 59, 59,
        999_999), None),
    (6, -32768, -(2**31), -(2**63), Decimal("-9999999999999999999999999999.9999999999"),
    Decimal("-99999999.99"), -1.7976931348623157e308, "日本", " x ", *_at(2, 1, 1), False),
    (7, 7, 7, 7, Decimal("2.5"), Decimal("2.50"), 2.5, "  two  words ", "o", *_at(2024, 3, 31, 2,
    30), True),
    (8, -7, -7, -7, Decimal("-2.5"), Decimal("-2.50"), 5e-324, "\ttab\n", "%", *_at(2024, 10, 27,
    2, 30), True),
    (9, 3, 3, 9007199254740993, Decimal("123456789012345678.1234567891"), Decimal("0.05"), 0.1,
    "a_c", "ß", *_at(1900, 3, 1, 12), None),
    (10, 2, 2, 2, Decimal("0.5"), Decimal("1.00"), float("inf"), "100%", "", *_at(2024, 12, 30, 23,
    59, 59, 1), False),
    (11, 2, 2, 2, Decimal("1.5"), Decimal("1.00"), float("-inf"), "a", "a", *_at(2000, 1, 1, 0, 0,
    0, 100_000), True),
    (13, 4, 4, 4, Decimal("12678971935090041.9266466502"), Decimal("12.34"), 123456789.123,
    "\u00a0n\u3000", "\u2003", *_at(2024, 1,
    1), True),
    (12, 5, 5, 5, Decimal("3.5"), Decimal("0.15"), 1e16, "\U0001f600x", "x", *_at(2024, 3, 31, 1,
    0), None),
]  # fmt: skip
OTHERS: Final = [
    (1, 1, "a", None),
    (2, 2, "B", 1),
    (3, 2, None, 2),
    (4, None, "é", 2),
    (5, 7, "", 9),
]
DIGITS: Final = [
    (1, "12", "2024-02-29 12:30:00"),
    (2, "-0.5", "1969-12-31 23:59:59.999999"),
    (3, "99999999999999999999.995", "2024-03-31 02:30:00"),
    (4, None, None),
    (5, "1.005", "0001-01-01 00:00:00"),
]


DAY: Final = timedelta(days=1)
CUT_TIME: Final = datetime(2024, 3, 31, 1, 2, 3, 500_000, tzinfo=UTC)
"""What ``cut_time()`` is in every case; Postgres has a function for it, which nobody replaces."""
_IN_POSTGRES: Final = (
    "CREATE OR REPLACE FUNCTION public.cut_time() RETURNS timestamptz LANGUAGE sql "
    "RETURN TIMESTAMPTZ '2024-03-31 03:02:03.5 Europe/Berlin'"
)


def _moment(number: int, k: str | None, n: int, text: str) -> tuple[object, ...]:
    """Return a row of dialect.m at this time, in UTC."""
    moment = datetime.fromisoformat(text)
    return number, k, n, moment, moment.replace(tzinfo=UTC), moment.date()


MOMENTS: Final = [
    (1, "a", 1, None, None, None),
    _moment(2, "a", 2, "1969-12-31 23:58:00"),
    _moment(3, "b", 3, "1969-12-31 23:55:00"),
    _moment(4, "a", 4, "1970-01-01 00:00:00"),
    _moment(5, "a", 5, "2024-03-28 00:00:00"),
    _moment(6, None, 6, "2024-03-31 00:59:59.999999"),
    _moment(7, None, 6, "2024-03-31 01:00:00"),
    _moment(8, "b", 8, "2024-03-31 01:05:00"),
    _moment(9, "b", 8, "2024-03-31 01:10:00.000001"),
    _moment(10, "a", 1, "2024-10-27 00:30:00"),
    _moment(11, "a", 1, "2024-10-27 01:30:00"),
    _moment(12, "a", 2, "2024-10-27 01:30:00"),
    _moment(13, "é", 1, "1582-10-10 12:00:00"),
]


def fill_postgres(connection: Connection, collation: str) -> None:
    """Create the tables in a schema ``dialect`` of Postgres, with texts of a collation."""
    connection.execute("DROP SCHEMA IF EXISTS dialect CASCADE")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET search_path = public")
    connection.execute(_IN_POSTGRES)
    with connection.cursor() as cursor:
        for statement in _structure(f'text COLLATE "{collation}"'):
            cursor.execute(statement.encode())
        for table, rows in _contents():
            places = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO dialect.{table} VALUES ({places})".encode(), rows)


def fill_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the same tables in DuckDB."""
    for statement in (*SETTINGS, *_structure("text")):
        connection.execute(statement)
    for table, rows in _contents():
        places = ", ".join(["?"] * len(rows[0]))
        connection.executemany(f"INSERT INTO dialect.{table} VALUES ({places})", rows)


def _structure(text: str) -> list[str]:
    kinds = {**COLUMNS, "t": text, "u": text}
    times = "ts timestamp, tz timestamptz, d date"
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    return [
        "CREATE SCHEMA dialect",
        f"CREATE TABLE dialect.v ({columns})",
        f"CREATE TABLE dialect.w (id integer, n integer, t {text}, k integer)",
        f"CREATE TABLE dialect.m (id integer, k {text}, n integer, {times})",
        f"CREATE TABLE dialect.s (id integer, t {text}, u {text})",
        "CREATE TABLE dialect.x (id integer, digits text, moment text)",
    ]


def _contents() -> list[tuple[str, list[tuple[object, ...]]]]:
    pairs: list[tuple[object, ...]] = [*PAIRS]
    return [
        ("v", list(ROWS)),
        ("w", list(OTHERS)),
        ("x", list(DIGITS)),
        ("m", list(MOMENTS)),
        ("s", pairs),
    ]
