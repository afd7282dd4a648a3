"""A barrier is one transaction, and can be told from the connector's heartbeat."""

import pytest

from cdc.source.server import barrier
from cdc.source.server.connection import connect
from tests.servers.fixtures import Makers

pytestmark = pytest.mark.integration
TABLE = """
CREATE SCHEMA wal2lake;
CREATE TABLE wal2lake.heartbeat (id int PRIMARY KEY, at timestamptz, token text);
INSERT INTO wal2lake.heartbeat VALUES (1);
CREATE PUBLICATION barriers FOR TABLE wal2lake.heartbeat;
"""
HEARTBEAT = "UPDATE wal2lake.heartbeat SET at = now() WHERE id = 1"
CHANGES = (
    "SELECT data FROM pg_logical_slot_get_binary_changes('barriers', NULL, NULL,"
    " 'proto_version', '1', 'publication_names', 'barriers')"
)


def test_a_barrier_has_two_events(servers: Makers) -> None:
    server = servers["postgres"]()
    server.start()
    with connect(server.address) as connection:
        for statement in TABLE.strip().split("\n"):
            connection.execute(statement.encode())
        connection.execute("SELECT pg_create_logical_replication_slot('barriers', 'pgoutput')")

        def messages() -> str:
            return "".join(chr(row[0][0]) for row in connection.execute(CHANGES.encode()))

        connection.execute(HEARTBEAT.encode())
        assert messages().replace("R", "") == "BUC"
        barrier.touch(connection, "token")
        assert messages().replace("R", "") == "BUUC"
