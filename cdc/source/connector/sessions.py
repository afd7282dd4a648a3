"""Find out from Postgres whether the connector is connected, and what it is doing."""

import math
from typing import Final

from psycopg import errors

from cdc.errors import CdcError, ErrorKind
from cdc.observe.causes import SlotFacts
from cdc.source.notes.trigger_functions import TRIGGERS
from cdc.source.notes.unnoted import trigger_damage
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
    """Return the state of the slot, its reader, and what the reader waits for.

    Raises like ``translated``.
    """
    with translated("looking for the connector"):
        row = connection.execute(_FACTS, (slot, slot)).fetchone()
    if row is None:
        return SlotFacts(exists=False)
    exists, lost, pid, application, waits_for, blocked_by, working, has_publication = row
    return SlotFacts(
        exists=exists,
        lost=lost,
        pid=pid,
        application=application,
        waits_for=waits_for,
        blocked_by=blocked_by,
        working=working,
        has_publication=has_publication,
        heartbeat_seconds=_heartbeat_seconds(connection),
        unnoted=trigger_damage(connection, TRIGGERS),
    )


def _heartbeat_seconds(connection: Connection) -> float:
    """Return the heartbeat's age; infinite if the table or its row is gone, 0 if it is unreadable.

    The table may be locked; the blocker is then reported by other facts.
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
    """Return whether the slot is being read, or a connector has a session in the database.

    During its first snapshot the connector has a session, but does not read the slot. A second
    connector in the same database cannot be told from ours. Returns None if the source cannot be
    asked.
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
