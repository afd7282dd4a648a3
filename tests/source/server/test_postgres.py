"""Test connections that fail, and their messages, which never show a password."""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdc.errors import CdcError, ErrorKind
from cdc.events.values.lsn import format_lsn, parse_lsn
from cdc.source.server import barrier, slot
from cdc.source.server.connection import connect, translated
from cdc.source.server.finding import Level
from cdc.source.server.snapshot import exported_snapshot
from cdc.source.setup.preflight import role_findings, server_findings
from cdc.source.setup.prepare import prepare, publication_tables
from cdc.tables import HEARTBEAT, STRUCTURE, TableId
from tests.servers.proxy import proxied
from tests.source.conftest import Maker
from tests.waiting import until

pytestmark = pytest.mark.integration

Sql = Callable[[str], object]
SECRET = "pa55-w0rd"
SOURCE_SQL = Path(__file__).resolve().parents[3] / "connectors" / "source.sql"


def refusal(url: str) -> CdcError:
    with pytest.raises(CdcError) as caught:
        connect(url)
    assert SECRET not in str(caught.value)
    return caught.value


def test_a_port_without_a_server_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = refusal(f"postgresql://u:{SECRET}@127.0.0.1:{port}/d")
    assert error.kind is ErrorKind.UNREACHABLE
    assert error.message == f"no Postgres answers at 127.0.0.1:{port}"


def test_a_wrong_password_user_or_database_is_named(source_url: str) -> None:
    where = urlsplit(source_url)
    for user, database in (("postgres", "app"), ("nobody-here", "app")):
        error = refusal(f"postgresql://{user}:{SECRET}@127.0.0.1:{where.port}/{database}")
        assert error.kind is ErrorKind.SOURCE_NOT_READY
        assert "password authentication failed" in error.detail
        assert "WAL2LAKE_SOURCE__PASSWORD" in error.remedy
    error = refusal(source_url.replace("/app", "/no-such"))
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert 'database "no-such" does not exist' in error.detail


def test_a_connection_that_timed_out_is_tried_again(source_url: str) -> None:
    """A process suspended while connecting times out, which says nothing about the server."""
    where = urlsplit(source_url)
    with proxied(str(where.hostname), int(where.port or 0)) as proxy, ThreadPoolExecutor(1) as pool:
        url = make_conninfo(source_url, host=proxy.address[0], port=proxy.address[1])
        with proxy.stalled():
            connecting = pool.submit(connect, url, connect_timeout=2)
            until(lambda: proxy.accepted > 1 or connecting.done())
        with connecting.result() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_silent_server_is_tried_twice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(CdcError) as caught:
            connect(f"postgresql://u@127.0.0.1:{port}/d", connect_timeout=2)
        silent.settimeout(0)
        clients = [silent.accept()[0] for _ in range(2)]
        with pytest.raises(BlockingIOError):
            silent.accept()
    for client in clients:
        client.close()
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.message == f"no Postgres answers at 127.0.0.1:{port}"
    assert "timeout" in caught.value.detail


def test_an_invalid_url_is_a_config_error() -> None:
    error = refusal(f"postgresql://u:{SECRET}@h:port-{SECRET}/d")
    assert error.kind is ErrorKind.CONFIG


def test_a_lost_session_is_unreachable(source_url: str) -> None:
    with connect(source_url) as connection, connect(source_url) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(CdcError) as caught, translated("reading"):
            connection.execute("SELECT 1")
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert "Postgres runs" in caught.value.remedy


def test_a_failed_statement_is_reported_without_values(source_url: str) -> None:
    with (
        connect(source_url) as connection,
        pytest.raises(CdcError) as caught,
        translated("reading"),
    ):
        connection.execute("SELECT 1 / 0")
    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert caught.value.detail == "DivisionByZero, SQLSTATE 22012"
    assert "log" in caught.value.remedy


def test_prepare_can_be_repeated_and_adds_tables(
    source_url: str, sql: Sql, make_config: Maker
) -> None:
    sql("CREATE TABLE a (id int PRIMARY KEY)")
    config = make_config()
    first, second = TableId(config.name, "a"), TableId(config.name, "b")
    from cdc.source.catalog.captured import captured_tables  # noqa: PLC0415

    with connect(source_url) as connection:
        for _ in range(2):
            prepare(connection, config, captured_tables(connection, config))
        assert publication_tables(connection, config.name) == {HEARTBEAT, STRUCTURE, first}
        sql("CREATE TABLE b (id int PRIMARY KEY)")
        prepare(connection, config, captured_tables(connection, config))
        assert publication_tables(connection, config.name) == {
            HEARTBEAT,
            STRUCTURE,
            first,
            second,
        }
        rows = connection.execute("SELECT id FROM wal2lake.heartbeat").fetchall()
    assert rows == [(1,)]


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ("FOR ALL TABLES", "is FOR ALL TABLES"),
        ("FOR TABLE t WITH (publish = 'insert, update, delete')", "does not publish insert"),
        ("FOR TABLE t WHERE (id > 1)", "publishes only part of foreign_publication.t"),
        ("FOR TABLE t (id)", "publishes only part of foreign_publication.t"),
        ("FOR TABLE t WITH (publish_via_partition_root)", "publishes partitions under the name"),
    ],
)
def test_foreign_publication(
    source_url: str, sql: Sql, make_config: Maker, form: str, wrong: str
) -> None:
    config = make_config()
    sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
    sql(f"CREATE PUBLICATION {config.name} {form}")
    try:
        with connect(source_url) as connection, pytest.raises(CdcError) as caught:
            publication_tables(connection, config.name)
    finally:
        sql(f"DROP PUBLICATION {config.name}")
    assert caught.value.kind is ErrorKind.CONFLICT
    assert wrong in caught.value.message


def test_role_of_a_dba(source_url: str, make_config: Maker) -> None:
    """The DBA's script suffices for a role that may create nothing."""
    config = make_config(tables=["public.customers", "public.orders"])
    config = config.model_copy(update={"name": "wal2lake"})
    where = urlsplit(source_url)
    url = f"postgresql://wal2lake:{SECRET}@127.0.0.1:{where.port}/dba"
    with connect(source_url) as admin:
        admin.execute("CREATE DATABASE dba")
    with psycopg.connect(source_url.replace("/app", "/dba"), autocommit=True) as admin:
        admin.execute(
            "CREATE TABLE customers (id int PRIMARY KEY); CREATE TABLE orders (id int PRIMARY KEY)"
        )
        admin.execute(f"CREATE ROLE early LOGIN PASSWORD '{SECRET}'".encode())
        admin.execute("GRANT SELECT ON customers, orders TO early")
        with connect(url.replace("//wal2lake", "//early")) as connection:
            from cdc.source.catalog.captured import captured_tables  # noqa: PLC0415

            tables = captured_tables(connection, config)
            found = role_findings(connection, config, tuple(tables))
            wrong = {f.subject for f in found if f.level is Level.ERROR}
            assert wrong >= {"role early", "publication wal2lake", "wal2lake.heartbeat"}
            with pytest.raises(CdcError) as caught:
                prepare(connection, config, tables)
            assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
            assert "connectors/source.sql" in caught.value.remedy
        admin.execute(SOURCE_SQL.read_bytes())
        admin.execute(f"ALTER ROLE wal2lake PASSWORD '{SECRET}'".encode())
    with connect(url) as connection:
        tables = captured_tables(connection, config)
        found = role_findings(connection, config, tuple(tables))
        assert [f.level for f in found] == [Level.OK]
        prepare(connection, config, tables)
        barrier.touch(connection, "token")
        slot.probe(url, config.name, 10)
        with exported_snapshot(url, 10):
            pass


def test_a_fit_wal_level_is_reported(source_url: str) -> None:
    with connect(source_url) as connection:
        levels = {f.subject: f.level for f in server_findings(connection)}
    assert levels["wal_level"] is Level.OK


def test_an_open_transaction_that_delays_the_slot_is_named(source_url: str, sql: Sql) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    with connect(source_url) as blocker, connect(source_url) as connection:
        with blocker.transaction():
            blocker.execute("INSERT INTO an_open_transaction_that_delays_the_slot.t VALUES (1)")
            with pytest.raises(CdcError) as caught:
                slot.probe(source_url, "delayed", 1)
            assert caught.value.kind is ErrorKind.TIMEOUT
            assert f"pid {blocker.info.backend_pid} " in caught.value.detail
        slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'delayed%'"
        assert connection.execute(slots).fetchone() == (0,)
        slot.probe(source_url, "delayed", 10)
        assert connection.execute(slots).fetchone() == (0,)


def test_a_slot_with_another_plugin_is_refused(source_url: str) -> None:
    with connect(source_url) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('odd', 'test_decoding')")
        state = slot.slot_state(connection, "odd")
        with pytest.raises(CdcError) as caught:
            slot.refuse_foreign("odd", state, read_by_us=False)
        assert caught.value.kind is ErrorKind.CONFLICT
        assert "test_decoding" in caught.value.message
        slot.drop(connection, "odd")
        assert slot.slot_state(connection, "odd") is None


def test_a_slot_that_is_in_use_is_refused(source_url: str, sql: Sql, make_config: Maker) -> None:
    name = make_config().name
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    sql(f"CREATE PUBLICATION {name} FOR TABLE t")
    with connect(source_url) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        reader = connect(source_url, replication="database", application_name="another")
        try:
            reader.pgconn.send_query(
                f"START_REPLICATION SLOT {name} LOGICAL 0/0"
                f" (proto_version '1', publication_names '{name}')".encode()
            )
            while reader.pgconn.get_result() is None:
                pass
            state = slot.slot_state(connection, name)
            with pytest.raises(CdcError) as caught:
                slot.refuse_foreign(name, state, read_by_us=False)
        finally:
            reader.close()
        pid = reader.info.backend_pid if not reader.closed else state and state.active_pid
    assert caught.value.kind is ErrorKind.CONFLICT
    assert f"in use by pid {pid} (another)" in caught.value.message


def test_an_exported_snapshot_ends_at_its_lsn(source_url: str, sql: Sql) -> None:
    """It shows a transaction committed before the slot was created, and none committed after."""
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    sql("INSERT INTO t VALUES (1)")
    query = "SELECT id FROM an_exported_snapshot_ends_at_its_lsn.t"
    with connect(source_url) as connection:
        before = barrier.current_lsn(connection)
        with exported_snapshot(source_url, 20) as snapshot:
            sql("INSERT INTO t VALUES (2)")
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'".encode())
                assert connection.execute(query.encode()).fetchall() == [(1,)]
        assert before <= snapshot.lsn < barrier.current_lsn(connection)
        assert connection.execute(
            "SELECT count(*) FROM pg_replication_slots WHERE temporary"
        ).fetchone() == (0,)


def test_lsns_are_parsed_and_printed_like_postgres(source_url: str) -> None:
    with connect(source_url) as connection:
        row = connection.execute(
            "SELECT pg_current_wal_lsn()::text, (pg_current_wal_lsn() - '0/0')::bigint"
        ).fetchone()
    assert row is not None
    assert parse_lsn(row[0]) == row[1]
    assert format_lsn(row[1]) == row[0]
    assert format_lsn(parse_lsn("16/B374D848")) == "16/B374D848"
