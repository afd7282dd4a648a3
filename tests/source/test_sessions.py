"""Whether the connector is at its source: what Postgres itself shows of it."""

import psycopg
import pytest

from cdc.source.sessions import is_at_source
from tests.servers.fixtures import Makers

pytestmark = pytest.mark.integration

SLOT = "kept"


def test_of_its_sessions_and_its_slot(source_url: str) -> None:
    with psycopg.connect(source_url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
    assert is_at_source(source_url, SLOT) is False
    with psycopg.connect(source_url, application_name="Debezium General"):
        assert is_at_source(source_url, SLOT) is True
    with psycopg.connect(source_url, application_name="psql"):
        assert is_at_source(source_url, SLOT) is False


def test_of_a_source_that_is_gone_nobody_can_say(servers: Makers) -> None:
    postgres = servers["postgres"]()
    url = postgres.start()
    postgres.kill()
    assert is_at_source(url, SLOT) is None
