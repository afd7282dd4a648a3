"""An error of the source says whether it is temporary and what helps, in each state of Postgres."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from cdc.capture import source_watch
from cdc.capture.source_watch import SourceWatch
from cdc.errors import CdcError, ErrorKind
from cdc.job import health_watch
from cdc.source.rows.copy import blocks
from cdc.source.server import connection as source_postgres
from cdc.source.server.connection import connect, translated
from cdc.source.server.origin import origin
from cdc.stack.servers import postgres
from tests.servers.process import ProcessServer
from tests.servers.process import servers as processes
from tests.servers.proxy import proxied
from tests.waiting import until

pytestmark = pytest.mark.integration

SECRET = "pa55-w0rd"


def refusal(url: str) -> CdcError:
    with pytest.raises(CdcError) as caught:
        connect(url)
    assert SECRET not in str(caught.value)
    return caught.value


@contextmanager
def own_postgres(folder: Path) -> Iterator[ProcessServer]:
    """Start a Postgres that a test may stop and reconfigure."""
    server = processes(folder)["postgres"]()
    assert isinstance(server, ProcessServer)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def with_parameters(url: str, parameters: str) -> str:
    return f"{url}?{parameters}"


def test_a_missing_password_is_named(source_url: str) -> None:
    where = urlsplit(source_url)
    error = refusal(f"postgresql://postgres@127.0.0.1:{where.port}/app?passfile=/dev/null")
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert "requires a password, and none is configured" in error.message
    assert "WAL2LAKE_SOURCE__PASSWORD" in error.remedy


def test_a_server_without_tls_is_named(source_url: str) -> None:
    error = refusal(with_parameters(source_url, "sslmode=require"))
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert "does not support TLS" in error.message
    assert "sslmode" in error.remedy


def test_a_server_that_accepts_only_tls_is_named_with_what_is_missing(tmp_path: Path) -> None:
    with own_postgres(tmp_path) as server:
        data = server.state.data("postgres")
        _certificate(data)
        (data / "pg_hba.conf").write_text("hostssl all all all scram-sha-256\n")
        with connect(server.address) as connection:
            connection.execute("ALTER SYSTEM SET ssl = on")
            connection.execute("SELECT pg_reload_conf()")

        def refuses_plain() -> bool:
            try:
                connect(with_parameters(server.address, "sslmode=disable")).close()
            except CdcError:
                return True
            return False

        until(refuses_plain)
        plain = refusal(with_parameters(server.address, "sslmode=disable"))
        assert plain.kind is ErrorKind.SOURCE_NOT_READY
        assert "no pg_hba.conf entry" in plain.detail
        nothing = f"sslmode=verify-full&sslrootcert={tmp_path}/none.crt"
        unjudged = refusal(with_parameters(server.address, nothing))
        assert unjudged.kind is ErrorKind.SOURCE_NOT_READY
        assert "no CA certificate is installed to verify it" in unjudged.message
        _certificate(tmp_path)
        other = f"sslmode=verify-ca&sslrootcert={tmp_path}/server.crt"
        untrusted = refusal(with_parameters(server.address, other))
        assert untrusted.kind is ErrorKind.SOURCE_NOT_READY
        assert "is not trusted" in untrusted.message
        with connect(with_parameters(server.address, "sslmode=require")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def _certificate(folder: Path) -> None:
    key, certificate = folder / "server.key", folder / "server.crt"
    subject = ["-subj", "/CN=localhost", "-days", "2", "-nodes", "-newkey", "rsa:2048"]
    command = ["openssl", "req", "-x509", *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    key.chmod(0o600)
    if os.geteuid() == 0:
        owner = folder.stat()
        for file in (key, certificate):
            os.chown(file, owner.st_uid, owner.st_gid)


def test_a_server_that_shuts_down_or_starts_up_is_asked_again_later(tmp_path: Path) -> None:
    with own_postgres(tmp_path) as server:
        assert server.process is not None
        with connect(server.address):
            os.kill(server.process.pid, signal.SIGTERM)  # Postgres waits for the session to end
            until(lambda: "shutting down" in refusal(server.address).detail)
            assert refusal(server.address).kind is ErrorKind.UNREACHABLE
        until(lambda: server.process is None or server.process.exit_code() is not None)
        data = server.state.data("postgres")
        (data / "standby.signal").touch()  # it recovers for ever and accepts no session
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write("hot_standby = off\n")
        from cdc.stack.process.process import Process  # noqa: PLC0415

        server.process = Process("postgres", server.embedded.command(), server.state)

        def answers() -> bool:
            return "accepts no connections at the moment" in refusal(server.address).message

        until(answers)
        error = refusal(server.address)
        assert error.kind is ErrorKind.UNREACHABLE
        assert "wait until it has started" in error.remedy


def test_a_server_without_a_connection_left_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"max_connections": "6", "superuser_reserved_connections": "3"}.items():
        monkeypatch.setitem(postgres._SETTINGS, name, value)
    monkeypatch.setitem(postgres._SETTINGS, "max_wal_senders", "2")
    with own_postgres(tmp_path) as server:
        with connect(server.address) as connection:
            connection.execute(f"CREATE ROLE r LOGIN PASSWORD '{SECRET}'".encode())
        where = urlsplit(server.address)
        url = f"postgresql://r:{SECRET}@127.0.0.1:{where.port}/app"
        sessions = [connect(url) for _ in range(3)]
        reserved = refusal(url)
        sessions += [connect(server.address) for _ in range(3)]
        full = refusal(server.address)
        for session in sessions:
            session.close()
    assert (reserved.kind, full.kind) == (ErrorKind.UNREACHABLE, ErrorKind.UNREACHABLE)
    assert "reserved" in reserved.detail
    assert "too many" in full.detail


def test_a_deadlock_is_not_reported_as_a_lost_source(source_url: str) -> None:
    with (
        connect(source_url) as connection,
        pytest.raises(CdcError) as caught,
        translated("a thing"),
    ):
        connection.execute("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.message == "a thing: the source cannot do it now"


LIMITS = (
    "statement_timeout = 1",
    "idle_in_transaction_session_timeout = 1",
    "idle_session_timeout = 1",
    "transaction_timeout = 1",
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "search_path = 'nowhere'",
    "row_security = on",
    "lock_timeout = 1",
)


def test_settings_of_the_role_and_the_database_do_not_apply_to_our_sessions(tmp_path: Path) -> None:
    with own_postgres(tmp_path) as server:
        with connect(server.address) as connection:
            for limit in LIMITS:
                connection.execute(f"ALTER ROLE postgres SET {limit}".encode())
                connection.execute(f"ALTER DATABASE app SET {limit}".encode())
            connection.execute("CREATE TABLE public.t (id int)")
        with connect(server.address) as connection:
            # Longer than the role's statement_timeout of 1 ms: it fails if that were in force.
            connection.execute("SELECT pg_sleep(0.2)")
            with connection.transaction():
                connection.execute("INSERT INTO public.t VALUES (1)")
            names = [limit.partition(" =")[0] for limit in LIMITS]
            shown = {
                name: (connection.execute(f"SHOW {name}".encode()).fetchone() or ("",))[0]
                for name in names
            }
    assert shown == {
        "statement_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "idle_session_timeout": "0",
        "transaction_timeout": "0",
        "default_transaction_read_only": "off",
        "default_transaction_isolation": "read committed",
        "search_path": "pg_catalog",
        "row_security": "off",
        "lock_timeout": "10s",
    }


def test_a_query_to_a_silent_server_times_out(source_url: str) -> None:
    where = urlsplit(source_url)
    with proxied("127.0.0.1", int(where.port or 0)) as proxy:
        url = source_url.replace(f":{where.port}", f":{proxy.address[1]}")
        connection = connect(url, answer_seconds=0.5)
        with proxy.stalled(), pytest.raises(CdcError) as caught, translated("asking"):
            connection.execute("SELECT 1")
        assert connection.closed
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.detail == "no answer within 0.5 s"


def test_a_copy_from_a_server_that_falls_silent_times_out(source_url: str) -> None:
    where = urlsplit(source_url)
    query = psycopg.sql.SQL("SELECT repeat('x', 1000) FROM generate_series(1, 1000000)")
    with proxied("127.0.0.1", int(where.port or 0)) as proxy:
        url = source_url.replace(f":{where.port}", f":{proxy.address[1]}")
        connection = connect(url, answer_seconds=0.5)
        reading = blocks(connection, query, "reading t", block_bytes=1 << 16)
        assert next(reading)
        with proxy.stalled(), pytest.raises(CdcError) as caught:
            for _ in reading:
                pass
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.message == "reading t: lost the connection to the source"


def test_a_copy_brings_every_row_or_says_that_it_ended_early(source_url: str) -> None:
    whole = psycopg.sql.SQL("SELECT 1, 60 / i FROM generate_series(1, 60000) i")
    broken = psycopg.sql.SQL("SELECT 1, 60 / (50000 - i) FROM generate_series(1, 60000) i")
    with connect(source_url) as connection:
        read = b"".join(blocks(connection, whole, "reading t", block_bytes=1 << 10))
        with pytest.raises(CdcError) as caught:
            for _ in blocks(connection, broken, "reading t", block_bytes=1 << 10):
                pass
        again = b"".join(blocks(connection, whole, "reading t"))
    assert read.count(b"\n") == 60_000
    assert again == read
    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert "division" not in str(caught.value)  # such messages may quote a value


def test_a_cut_does_not_wait_for_a_source_that_falls_silent(
    source_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Landed events are published without an answer; the next look asks the source again."""
    monkeypatch.setattr(source_postgres, "_ASK_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(source_watch, "_AGAIN_SECONDS", 0.0)
    where = urlsplit(source_url)
    with proxied("127.0.0.1", int(where.port or 0)) as proxy:
        url = source_url.replace(f":{where.port}", f":{proxy.address[1]}")
        with connect(source_url) as connection:
            connection.execute("SELECT pg_create_logical_replication_slot('quiet', 'pgoutput')")
            known = origin(connection)
        watch = SourceWatch(url, "quiet", known, lambda: 0)
        watch.look(0)
        with proxy.stalled():
            looked = threading.Thread(target=watch.look, args=[0])
            looked.start()
            looked.join(60)
            assert not looked.is_alive()
            assert watch.position() is None
        watch.look(0)
        assert watch.position() is not None
        watch.close()
        with connect(source_url) as connection:
            connection.execute("SELECT pg_drop_replication_slot('quiet')")


def test_the_health_watch_reconnects_to_a_source_that_fell_silent(
    source_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_postgres, "_ASK_ANSWER_SECONDS", 0.5)
    where = urlsplit(source_url)
    with proxied("127.0.0.1", int(where.port or 0)) as proxy:
        url = source_url.replace(f":{where.port}", f":{proxy.address[1]}")
        source = health_watch._Source(url, "none")
        assert not source.ask().exists
        with proxy.stalled(), ThreadPoolExecutor(1) as pool:
            error = pool.submit(source.ask).exception(60)
        assert isinstance(error, CdcError)
        assert error.kind is ErrorKind.UNREACHABLE
        assert not source.ask().exists
        assert source._connection is not None
        shown = source._connection.execute("SHOW lock_timeout").fetchone()
        source._connection.close()
    assert shown == ("1s",)


def test_an_unknown_host_is_unreachable() -> None:
    error = refusal(f"postgresql://u:{SECRET}@no-such-host.invalid:5432/d")
    assert error.kind is ErrorKind.UNREACHABLE
    assert "no-such-host.invalid" in error.message


def test_a_port_without_a_server_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = refusal(f"postgresql://u:{SECRET}@127.0.0.1:{port}/d")
    assert error.message == f"no Postgres answers at 127.0.0.1:{port}"
