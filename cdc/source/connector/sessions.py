"""Whether the connector is at its source, and what it does there, as Postgres itself sees it."""

import math
from typing import Final

from psycopg import errors

from cdc.errors import CdcError, ErrorKind
from cdc.observe.causes import SlotFacts
from cdc.source.notes.sql import TRIGGERS
from cdc.source.notes.unnoted import spoiled
from cdc.source.server.connection import Connection, connect_to_ask, translated

_PRESENT: Final = """
SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s AND active)
    OR EXISTS (SELECT FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE 'Debezium %%')
"""
_FACTS: Final = """
WITH own AS (
  SELECT * FROM pg_stat_activity
   WHERE datname = current_database() AND application_name LIKE 'Debezium %%')
SELECT s.slot_name IS NOT NULL, coalesce(s.wal_status = 'lost', false), s.active_pid,
       coalesce(a.application_name, ''), coalesce(a.wait_event, ''),
       coalesce((SELECT string_agg(DISTINCT pid::text, ', ')
                   FROM (SELECT unnest(pg_blocking_pids(own.pid)) FROM own) AS b (pid)), ''),
       EXISTS (SELECT FROM own WHERE state = 'active' AND CASE backend_type
                 WHEN 'walsender' THEN coalesce(wait_event_type, 'IO') = 'IO'
                 ELSE coalesce(wait_event_type, '') NOT IN ('Lock', 'Client') END),
       EXISTS (SELECT FROM pg_publication WHERE pubname = %s)
  FROM (SELECT) AS one
  LEFT JOIN pg_replication_slots s ON s.slot_name = %s
  LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
"""
_HEARTBEAT: Final = """
SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM wal2lake.heartbeat WHERE id = 1
"""


def slot_facts(connection: Connection, slot: str) -> SlotFacts:
    """The slot, who reads it and what that waits for. Raises UNREACHABLE, SOURCE_NOT_READY."""
    with translated("looking for the connector"):
        row = connection.execute(_FACTS, (slot, slot)).fetchone()
    if row is None:
        return SlotFacts(exists=False)
    exists, lost, pid, application, waits_for, blocked_by, working, published = row
    return SlotFacts(
        exists=exists,
        lost=lost,
        pid=pid,
        application=application,
        waits_for=waits_for,
        blocked_by=blocked_by,
        working=working,
        published=published,
        heartbeat_seconds=_heartbeat_seconds(connection),
        unnoted=spoiled(connection, TRIGGERS),
    )


def _heartbeat_seconds(connection: Connection) -> float:
    """Infinite where the table is gone; 0 where it cannot be asked.

    Somebody may hold the table, who is named as in the way.
    """
    try:
        with translated("reading the heartbeat"):
            row = connection.execute(_HEARTBEAT).fetchone()
    except CdcError as error:
        if error.kind is ErrorKind.UNREACHABLE:
            raise
        return math.inf if isinstance(error.__context__, errors.UndefinedTable) else 0.0
    return float(row[0]) if row and row[0] is not None else math.inf


def is_at_source(url: str, slot: str) -> bool | None:
    """True where the slot is read, or a connector has a session at the database of ``url``.

    It has one while it takes its first snapshot, when nobody reads the slot. A second connector at
    the same database is not told apart from it. None where the source does not answer.
    """
    try:
        with (
            connect_to_ask(url) as connection,
            translated("looking for the connector"),
        ):
            row = connection.execute(_PRESENT, (slot,)).fetchone()
    except CdcError:
        return None
    return bool(row and row[0])
