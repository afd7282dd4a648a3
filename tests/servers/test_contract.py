"""Every kind of server keeps the promises of ``Server``: written data survive a crash."""

import httpx
import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.servers.fixtures import Makers
from tests.servers.process import ProcessServer

pytestmark = pytest.mark.integration

SCHEMA = '{"type":"record","name":"kept","fields":[]}'


def test_a_row_survives_the_crash_of_postgres(servers: Makers) -> None:
    postgres = servers["postgres"]()
    with psycopg.connect(postgres.start(), autocommit=True) as before:
        before.execute("create table kept (id int)")
        before.execute("insert into kept values (7)")
        assert before.execute("show wal_level").fetchone() == ("logical",)

    postgres.kill()

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.address, connect_timeout=2)
    with psycopg.connect(postgres.start()) as after:
        assert after.execute("select id from kept").fetchall() == [(7,)]


def test_a_row_survives_an_end_of_postgres_without_a_checkpoint(servers: Makers) -> None:
    postgres = servers["postgres"]()
    if not isinstance(postgres, ProcessServer):
        pytest.skip("the engine ends the Postgres of a container")
    with psycopg.connect(postgres.start(), autocommit=True) as before:
        before.execute("create table kept (id int)")
        before.execute("insert into kept values (7)")

    postgres.abort()

    with psycopg.connect(postgres.start()) as after:
        assert after.execute("select id from kept").fetchall() == [(7,)]
    log = postgres.state.log("postgres").read_text()
    assert "received immediate shutdown request" in log
    assert "database system was not properly shut down; automatic recovery in progress" in log


def test_topic_schema_and_plugins_survive_the_crash_of_their_servers(servers: Makers) -> None:
    kafka, registry, connect = (servers[name]() for name in ("kafka", "registry", "connect"))
    addresses = kafka.start(), registry.start(), connect.start()
    _write(addresses[0], addresses[1])

    for server in (connect, registry, kafka):
        server.kill()

    assert (kafka.start(), registry.start(), connect.start()) == addresses
    assert "kept" in AdminClient({"bootstrap.servers": addresses[0]}).list_topics(timeout=10).topics
    subjects = httpx.get(f"{addresses[1]}/apis/ccompat/v7/subjects").json()
    assert "kept" in subjects
    plugins = httpx.get(f"{addresses[2]}/connector-plugins").json()
    assert "io.debezium.connector.postgresql.PostgresConnector" in {
        plugin["class"] for plugin in plugins
    }


def test_stopping_twice_and_killing_what_is_gone_does_nothing(servers: Makers) -> None:
    postgres = servers["postgres"]()
    postgres.start()

    postgres.stop()
    postgres.stop()
    postgres.kill()

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.address, connect_timeout=2)


def _write(kafka: str, registry: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(timeout=30)
    # The first schema makes a registry load what it needs for that.
    subject = f"{registry}/apis/ccompat/v7/subjects/kept/versions"
    httpx.post(subject, json={"schema": SCHEMA}, timeout=60).raise_for_status()
