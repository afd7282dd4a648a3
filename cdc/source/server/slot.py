"""Inspect the logical replication slot, and test whether one can be created now.

The connector creates the slot itself, because only then does its snapshot read exactly what the
slot's stream leaves out (docs/decisions/0004-who-makes-the-slot.md). Creating a slot waits for
every open transaction; ``probe`` tries it beforehand, with a time limit, and names the blockers.
"""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from psycopg import errors

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.source.server.connection import Connection, connect, translated

PLUGIN: Final = "pgoutput"
NEW_EPOCH: Final = "wal2lake up --new-epoch, then wal2lake resnapshot --all"
"""The remedy for lost changes."""
_LOOK_SECONDS: Final = 0.2


class LostChangesError(CdcError):
    """Reports, as CHAIN_BROKEN, that changes can no longer be captured: only a new epoch helps."""

    def __init__(
        self, message: str, *, reason: Reason, detail: str = "", remedy: str = NEW_EPOCH
    ) -> None:
        super().__init__(
            ErrorKind.CHAIN_BROKEN, message, detail=detail, remedy=remedy, reason=reason
        )


_STATE: Final = """
SELECT s.plugin, s.database, s.active_pid, COALESCE(a.application_name, ''),
       (s.confirmed_flush_lsn - '0/0'::pg_lsn)::bigint, s.wal_status,
       (pg_current_wal_lsn() - s.restart_lsn)::bigint, s.safe_wal_size,
       s.database = current_database()
  FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
 WHERE s.slot_name = %s
"""
_BLOCKERS: Final = """
SELECT pid, COALESCE(date_trunc('second', now() - xact_start)::text, '')
  FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s)) ORDER BY xact_start
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """Describes the state of a slot, as pg_replication_slots shows it.

    ``retained_bytes`` is the WAL kept for the slot, ``safe_bytes`` how much more may be written
    before the slot is lost. LSNs are integers; a value is None where Postgres shows NULL.
    """

    plugin: str
    database: str
    active_pid: int | None
    application: str  # of the process reading it
    confirmed_lsn: int | None
    wal_status: str | None
    retained_bytes: int | None
    safe_bytes: int | None
    of_this_database: bool


def slot_state(connection: Connection, name: str) -> SlotState | None:
    """Return the state of the named slot, or None if there is none. Raises like ``translated``."""
    with translated(f"looking at slot {name}"):
        row = connection.execute(_STATE, (name,)).fetchone()
    if row is None:
        return None
    plugin, database, pid, application, confirmed, status, retained, safe, ours = row
    return SlotState(
        plugin=plugin,
        database=database,
        active_pid=pid,
        application=application,
        confirmed_lsn=confirmed,
        wal_status=status,
        retained_bytes=retained,
        safe_bytes=safe,
        of_this_database=ours,
    )


def is_read(connection: Connection, name: str) -> bool:
    """Return whether the slot exists and a process is reading it."""
    state = slot_state(connection, name)
    return state is not None and state.active_pid is not None


def refuse_foreign(name: str, state: SlotState | None, *, read_by_us: bool) -> None:
    """Raise CONFLICT if the slot belongs to another client, CHAIN_BROKEN if it is lost.

    ``read_by_us`` says that whoever reads it now is our connector. A missing slot passes.
    """
    if state is None:
        return
    if state.plugin != PLUGIN or not state.of_this_database:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"slot {name} exists for database {state.database} with plugin {state.plugin}",
            remedy="choose another name in wal2lake.yaml, or drop that slot",
        )
    if state.active_pid is not None and not read_by_us:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"slot {name} is in use by pid {state.active_pid} ({state.application or 'unnamed'})",
            remedy="stop that client (another wal2lake?), or choose another name in wal2lake.yaml",
        )
    readable(name, state)


def readable(name: str, state: SlotState | None) -> SlotState:
    """Return ``state``; raise CHAIN_BROKEN if the connector can no longer read from the slot."""
    if state is None:
        raise LostChangesError(
            f"slot {name} is gone: changes since it was dropped are lost", reason=Reason.SLOT_GONE
        )
    if state.wal_status == "lost":
        raise LostChangesError(
            f"slot {name} is lost: Postgres removed WAL that it still needed",
            reason=Reason.SLOT_LOST,
        )
    return state


def refuse_ahead(name: str, state: SlotState, sent: int) -> None:
    """Raise CHAIN_BROKEN if the slot is ahead of ``sent``, the LSN that the connector stored.

    The connector stores a position before confirming it to the slot, so a slot that is ahead was
    moved by another client. ``state`` must have been read before ``sent``. A ``sent`` of 0 means
    that the stored position is unknown, and passes.
    """
    if (state.confirmed_lsn or 0) > sent > 0:
        raise LostChangesError(
            f"slot {name} begins after the connector's last event: it was recreated, or advanced "
            "by another client",
            reason=Reason.SLOT_RECREATED,
            detail="the changes in between are lost",
        )


def probe(url: str, name: str, seconds: float) -> None:
    """Create a temporary slot and drop it, to find out whether the connector can create one.

    Waits at most ``seconds``. Raises TIMEOUT naming the pids of the blocking transactions, and
    SOURCE_NOT_READY if Postgres refuses. Leaves nothing behind.
    """
    with connect(url) as maker, connect(url) as watcher, ThreadPoolExecutor(1) as pool:
        making = pool.submit(_make_and_drop, maker, f"{name}_probe")
        try:
            _await(making, watcher, maker.info.backend_pid, seconds)
        finally:
            if not making.done():
                maker.cancel_safe()


def drop(connection: Connection, name: str) -> None:
    """Drop the named slot if it exists. Raises like ``translated``."""
    with translated(f"dropping slot {name}"):
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %s",
            (name,),
        )


def _make_and_drop(maker: Connection, name: str) -> None:
    """Create a slot and drop it; it is temporary, in case the process dies in between."""
    try:
        with translated("creating a replication slot"):
            maker.execute("SELECT pg_create_logical_replication_slot(%s, %s, true)", (name, PLUGIN))
            drop(maker, name)
    except CdcError as error:
        if isinstance(error.__context__, errors.ConfigurationLimitExceeded):
            error.remedy = "raise max_replication_slots, or drop an unused slot"
        raise


def _await(making: Future[None], watcher: Connection, pid: int, seconds: float) -> None:
    blockers: list[str] = []
    waited = 0.0
    while waited < seconds:
        if wait([making], timeout=_LOOK_SECONDS).done:
            making.result()
            return
        waited += _LOOK_SECONDS
        rows = watcher.execute(_BLOCKERS, (pid,)).fetchall()
        blockers = [f"{blocker} (for {age})" for blocker, age in rows] or blockers
    raise CdcError(
        ErrorKind.TIMEOUT,
        f"no replication slot could be created within {seconds:g} s: a transaction is open",
        detail=f"blocked by pid {', '.join(blockers)}" if blockers else "",
        remedy="end the transaction, or run SELECT pg_terminate_backend(pid)",
    )
