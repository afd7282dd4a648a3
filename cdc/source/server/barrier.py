"""Two ways to mark a point in the source's order of commits."""

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
    """Commit an update of the heartbeat row, so that the stream moves past every earlier commit."""
    with translated(f"updating {HEARTBEAT}"):
        connection.execute(
            sql.SQL("UPDATE {} SET token = %s, at = now() WHERE id = 1").format(
                identifier(HEARTBEAT)
            ),
            (token,),
        )
