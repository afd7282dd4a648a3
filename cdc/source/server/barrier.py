"""Marks a point in the source's order of commits, in one of two ways."""

from psycopg import sql

from cdc.source.server.connection import Connection, identifier, translated
from cdc.tables import HEARTBEAT


def current_lsn(connection: Connection) -> int:
    """Return the WAL insert position as an integer LSN.

    The record of every commit acknowledged before the call lies below it.
    """
    with translated("reading the source's position"):
        row = connection.execute(
            "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
        ).fetchone()
    return int(row[0]) if row else 0


def touch(connection: Connection, token: str) -> None:
    """Commit updates of the heartbeat row, so that the stream moves past every earlier commit.

    There are two of them: a transaction of one is a heartbeat, and heartbeats may wait before they
    land (cdc/kafka/quiet_stream.py).
    """
    update = sql.SQL("UPDATE {} SET token = %s, at = now() WHERE id = 1").format(
        identifier(HEARTBEAT)
    )
    with translated(f"updating {HEARTBEAT}"), connection.transaction():
        for _ in range(2):
            connection.execute(update, (token,))
