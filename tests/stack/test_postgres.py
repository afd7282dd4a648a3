"""The embedded Postgres is reachable for us and nobody else, wherever its state is."""

import os
import stat
from collections.abc import Iterator

import psutil
import psycopg
import pytest

from cdc.errors import CdcError
from cdc.stack.artifacts.install import install
from cdc.stack.artifacts.lock_file import postgres_set
from cdc.stack.embedded import await_ready
from cdc.stack.process.process import Process
from cdc.stack.servers import ports, postgres
from cdc.stack.servers.postgres import PostgresServer
from cdc.state.directory import StateDir

pytestmark = pytest.mark.integration


@pytest.fixture
def server(state: StateDir) -> Iterator[tuple[PostgresServer, Process]]:
    install([postgres_set()])
    embedded = PostgresServer(state, ports.choose(state, {})["postgres"])
    embedded.prepare()
    process = Process(embedded.name, embedded.command(), state)
    try:
        await_ready(embedded, process)
        yield embedded, process
    finally:
        process.stop()


def test_postgres_runs_below_a_private_directory_that_stays_private(
    server: tuple[PostgresServer, Process], state: StateDir
) -> None:
    embedded, process = server
    assert stat.S_IMODE(state.root.stat().st_mode) == 0o700
    with psycopg.connect(embedded.url) as connection:
        connection.execute("CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
        assert connection.execute("SELECT sum(i) FROM t").fetchone() == (500500,)
    uids = psutil.Process(process.pid).uids()
    assert uids.real == uids.effective
    assert uids.real != 0 or os.geteuid() != 0


def test_postgres_asks_for_the_password_and_listens_on_loopback_only(
    server: tuple[PostgresServer, Process], state: StateDir
) -> None:
    embedded, process = server
    password = state.secret("postgres")
    assert len(password) >= 24
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(embedded.url.replace(password, "guess"))
    listening = psutil.Process(process.pid).net_connections("inet")
    assert {connection.laddr[0] for connection in listening} == {"127.0.0.1"}
    assert password not in " ".join(psutil.Process(process.pid).cmdline())


def test_it_decodes_and_bounds_what_a_slot_may_retain(
    server: tuple[PostgresServer, Process],
) -> None:
    with psycopg.connect(server[0].url) as connection:
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        assert connection.execute("SHOW max_slot_wal_keep_size").fetchone() == ("4GB",)


def test_data_survive_a_kill(server: tuple[PostgresServer, Process], state: StateDir) -> None:
    embedded, process = server
    with psycopg.connect(embedded.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS i")
    psutil.Process(process.pid).kill()
    process.stop()
    again = Process(embedded.name, embedded.command(), state)
    try:
        await_ready(embedded, again)
        with psycopg.connect(embedded.url) as connection:
            assert connection.execute("SELECT i FROM kept").fetchone() == (7,)
    finally:
        again.stop()


def test_an_interrupted_initialisation_begins_anew(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = PostgresServer(state, ports.choose(state, {})["postgres"])
    half = state.data("postgres.partial")
    half.mkdir()
    (half / "PG_VERSION").write_text("17")
    embedded.prepare()
    assert (state.data("postgres") / "global").is_dir()

    elsewhere = PostgresServer(StateDir(state.root / "other"), 1)
    elsewhere.state.create()
    monkeypatch.setattr(postgres, "_binary", lambda _name: "/bin/false")
    with pytest.raises(CdcError, match="could not be initialised"):
        elsewhere.prepare()
    assert not elsewhere.state.data("postgres").exists()
    assert not (elsewhere.state.root / "data" / "postgres.password").exists()
