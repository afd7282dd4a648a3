"""Settings of role, database or server change no value, and stop nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Final

import pytest

from cdc.capture.bootstrap import establish
from cdc.client.check import check
from cdc.source.server.connection import Connection
from cdc.source.server.finding import Level
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.waiting import until
from tests.source.conftest import Maker
from tests.source.topic import Topic

pytestmark = pytest.mark.integration

LIMITS: Final = {
    "statement_timeout": "'50ms'",
    "lock_timeout": "'50ms'",
    "idle_in_transaction_session_timeout": "'50ms'",
    "idle_session_timeout": "'50ms'",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "serializable",
    "search_path": "nowhere",
    "row_security": "off",
}
PRINTED: Final = {
    "TimeZone": "'Asia/Kolkata'",
    "DateStyle": "'German'",
    "IntervalStyle": "'iso_8601'",
    "bytea_output": "'escape'",
    "extra_float_digits": "-15",
    "xmlbinary": "hex",
    "standard_conforming_strings": "off",
    "quote_all_identifiers": "on",
    "array_nulls": "off",
}
OF_THE_SERVER: Final = {**PRINTED, "lc_monetary": "'C'", "lc_numeric": "'C'", "lc_time": "'C'"}
VALUES: Final = {
    "at": ("timestamptz", "'2024-02-29 23:59:59.123456+05:30'"),
    "plain": ("timestamp", "'2024-02-29 23:59:59.123456'"),
    "day": ("date", "'2024-02-29'"),
    "days": ("date[]", "'{2024-02-29,NULL}'"),
    "time": ("time", "'23:59:59.123456'"),
    "span": ("interval", "'1 year 2 days 03:04:05.6'"),
    "bytes": ("bytea", r"'\x00ff27'"),
    "real": ("real", "0.1"),
    "double": ("float8", "0.1::float8 + 0.2::float8"),
    "price": ("numeric(10, 2)", "1234.50"),
    "cost": ("money", "1234.5"),
    "document": ("jsonb", """'{"a": "b\\u00e4"}'"""),
    "texts": ("text[]", r"""'{"a\"b",NULL,"NULL"}'"""),
    "range": ("tstzrange", "'[2024-01-01 00:00+00,2024-02-01 00:00+00)'"),
}


def test_settings_of_role_database_and_server_change_no_value(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in VALUES.items())
    source.execute("SET TimeZone = 'UTC'")
    source.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})".encode())
    row = ", ".join(text for _, text in VALUES.values())
    source.execute(f"INSERT INTO t VALUES (1, {row})".encode())
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    with _altered(source):
        found = check(pipeline)
        assert [each for each in found if each.level is Level.ERROR] == []
        establish(pipeline)
        topic.until(lambda events: len(events) == 1)
        listed = ", ".join(f'"{name}"' for name in VALUES)
        source.execute(f"INSERT INTO t SELECT 2, {listed} FROM t".encode())
        events = topic.until(lambda events: len(events) == 2)
    by_snapshot, by_stream = ({**value["after"], "id": 0} for _, value in events)
    assert by_snapshot == by_stream
    expected = source.execute(_EXPECTED).fetchone()
    assert expected is not None
    names = ("at", "plain", "day", "time", "double", "price", "cost", "bytes")
    assert tuple(_plain(by_stream[name]) for name in names) == expected


_EXPECTED: Final = b"""
SELECT to_char("at" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       (extract(epoch FROM plain) * 1000000)::bigint, "day" - date '1970-01-01',
       (extract(epoch FROM "time") * 1000000)::bigint, "double", price, cost::numeric, bytes
  FROM t WHERE id = 2
"""


def _plain(value: object) -> object:
    if isinstance(value, str) and value.replace(".", "").isdigit():
        return Decimal(value)
    return value


@contextmanager
def _altered(source: Connection) -> Iterator[None]:
    """Change the settings for sessions that start inside the block."""
    before = _digits(source)
    row = source.execute("SELECT current_user, current_database()").fetchone()
    assert row is not None
    role, database = row
    places = {f"ROLE {role}": LIMITS | PRINTED, f"DATABASE {database}": LIMITS | PRINTED}
    try:
        for place, settings in places.items():
            for name, value in settings.items():
                source.execute(f"ALTER {place} SET {name} = {value}".encode())
        for name, value in OF_THE_SERVER.items():
            source.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        source.execute("SELECT pg_reload_conf()")
        yield
    finally:
        for place in places:
            source.execute(f"ALTER {place} RESET ALL".encode())
        for name in OF_THE_SERVER:
            source.execute(f"ALTER SYSTEM RESET {name}".encode())
        source.execute("SELECT pg_reload_conf()")
        # The session reloads a moment later; until then it would print expected values differently.
        until(lambda: _digits(source) == before, 60, "the settings are not as they were")


def _digits(connection: Connection) -> object:
    return connection.execute("SHOW extra_float_digits").fetchone()
