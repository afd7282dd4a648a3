"""Two statements that put a mark into the source's order of commits."""

from psycopg import sql

from cdc.source.server.connection import Connection, identifier, translated
from cdc.tables import HEARTBEAT


def current_lsn(connection: Connection) -> int:
    """Every commit that was acknowledged before has its record below this position."""
    with translated("reading the source's position"):
        row = connection.execute(
            "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
        ).fetchone()
    return int(row[0]) if row else 0


def touch(connection: Connection, token: str) -> None:
    """A commit of our own, so that the stream moves past every commit before it."""
    with translated(f"updating {HEARTBEAT}"):
        connection.execute(
            sql.SQL("UPDATE {} SET token = %s, at = now() WHERE id = 1").format(
                identifier(HEARTBEAT)
            ),
            (token,),
        )
