"""Postgres shows who reads the slot, what holds the connector up, and disabled triggers."""

import math
import threading
from contextlib import closing

import psycopg
import pytest
from psycopg import pq

from cdc.source.connector.sessions import is_at_source, slot_facts
from cdc.source.notes import triggers
from cdc.source.server.connection import connect
from tests.servers.fixtures import Makers
from tests.waiting import until

pytestmark = pytest.mark.integration

SLOT = "kept"


def test_only_a_session_of_the_connector_counts_as_connected(source_url: str) -> None:
    with psycopg.connect(source_url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
    assert is_at_source(source_url, SLOT) is False
    with psycopg.connect(source_url, application_name="Debezium General"):
        assert is_at_source(source_url, SLOT) is True
    with psycopg.connect(source_url, application_name="psql"):
        assert is_at_source(source_url, SLOT) is False


def test_a_stopped_source_gives_no_answer(servers: Makers) -> None:
    postgres = servers["postgres"]()
    url = postgres.start()
    postgres.kill()
    assert is_at_source(url, SLOT) is None


def test_a_disabled_or_altered_event_trigger_is_named(source_url: str) -> None:
    """Missing triggers are not reported, because the role may not be able to create them."""
    with connect(source_url) as connection:
        assert slot_facts(connection, SLOT).unnoted == ""
        connection.execute(triggers.script().encode())
        assert slot_facts(connection, SLOT).unnoted == ""
        connection.execute("ALTER EVENT TRIGGER wal2lake_changed DISABLE")
        assert slot_facts(connection, SLOT).unnoted == "event trigger wal2lake_changed is disabled"
        connection.execute("ALTER EVENT TRIGGER wal2lake_changed ENABLE ALWAYS")
        assert "wal2lake_changed was altered" in slot_facts(connection, SLOT).unnoted
        connection.execute(triggers.script().encode())
        assert slot_facts(connection, SLOT).unnoted == ""
        connection.execute("DROP EVENT TRIGGER wal2lake_changed, wal2lake_gone, wal2lake_rewritten")
        connection.execute("DROP SCHEMA wal2lake CASCADE")


def test_the_slot_s_reader_and_its_wait_event_are_shown(source_url: str) -> None:
    name = "read"
    with connect(source_url) as connection:
        assert slot_facts(connection, name).exists is False
        connection.execute(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        connection.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        assert slot_facts(connection, name).has_publication is False
        assert slot_facts(connection, "everything").has_publication is True
        idle = slot_facts(connection, name)
        assert (idle.exists, idle.lost, idle.pid, idle.application) == (True, False, None, "")
        query = "?replication=database&application_name=Debezium%20Streaming"
        with closing(_reader(f"{source_url}{query}", name)) as reader:
            until(lambda: slot_facts(connection, name).waits_for.startswith("WalSenderWait"))
            facts = slot_facts(connection, name)
            assert facts.pid == reader.backend_pid
            assert facts.application == "Debezium Streaming"
            assert facts.working is False
        until(lambda: slot_facts(connection, name).pid is None)
        connection.execute(
            f"SELECT pg_drop_replication_slot('{name}'); DROP PUBLICATION everything"
        )


def test_the_session_that_blocks_the_heartbeat_and_its_age_are_shown(source_url: str) -> None:
    with connect(source_url) as connection:
        connection.execute("DROP SCHEMA IF EXISTS wal2lake CASCADE; CREATE SCHEMA wal2lake")
        assert slot_facts(connection, "none").heartbeat_seconds == math.inf
        connection.execute("CREATE TABLE wal2lake.heartbeat (id int PRIMARY KEY, at timestamptz)")
        connection.execute("INSERT INTO wal2lake.heartbeat VALUES (1, now() - interval '99 s')")
        assert 99 <= slot_facts(connection, "none").heartbeat_seconds < 3600
        connection.execute("SET lock_timeout = '100ms'")
        with (
            psycopg.connect(source_url) as holder,
            psycopg.connect(source_url, application_name="Debezium General") as waiter,
        ):
            holder.execute("LOCK TABLE wal2lake.heartbeat")
            waits = threading.Thread(target=_update, args=(waiter,))
            waits.start()
            until(lambda: slot_facts(connection, "none").blocked_by)
            facts = slot_facts(connection, "none")
            assert facts.blocked_by == str(holder.info.backend_pid)
            assert facts.heartbeat_seconds == 0  # unknown: the locked table is not waited for
            assert facts.working is False
            holder.rollback()
            waits.join()
        connection.execute("DROP SCHEMA wal2lake CASCADE")


def _update(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("UPDATE wal2lake.heartbeat SET at = now() WHERE id = 1")


class _Reader:
    """A client that reads a slot without confirming anything."""

    def __init__(self, connection: pq.abc.PGconn) -> None:
        self._connection = connection
        self.backend_pid = connection.backend_pid

    def close(self) -> None:
        self._connection.finish()


def _reader(url: str, slot: str) -> _Reader:
    connection = pq.PGconn.connect(url.encode())
    assert connection.status == pq.ConnStatus.OK, connection.error_message
    options = "proto_version '1', publication_names 'everything'"
    started = connection.exec_(f'START_REPLICATION SLOT "{slot}" LOGICAL 0/0 ({options})'.encode())
    assert started.status == pq.ExecStatus.COPY_BOTH, started.error_message
    return _Reader(connection)
