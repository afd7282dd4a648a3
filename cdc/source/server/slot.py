"""The logical replication slot: its state, and whether one can be made now.

The connector makes the slot itself, because only then does its snapshot read exactly what the
slot's stream leaves out (docs/decisions/0004-who-makes-the-slot.md). Making one waits for every
transaction that is open; ``probe`` does so first, with a limit, and names who is in the way.
"""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from psycopg import errors

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.source.server.connection import Connection, connect, translated

PLUGIN: Final = "pgoutput"
NEW_EPOCH: Final = "wal2lake up --new-epoch, then wal2lake resnapshot --all"
"""The remedy for changes that are lost."""
_LOOK_SECONDS: Final = 0.2


class LostChangesError(CdcError):
    """CHAIN_BROKEN where changes are in no log any more, and a new epoch is the way on."""

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
    """``retained_bytes`` of WAL wait for the slot; ``safe_bytes`` more before it is lost."""

    plugin: str
    database: str
    active_pid: int | None
    application: str  # of the process that reads it
    confirmed_lsn: int | None
    wal_status: str | None
    retained_bytes: int | None
    safe_bytes: int | None
    of_this_database: bool


def slot_state(connection: Connection, name: str) -> SlotState | None:
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
    """Whether a process reads it now; not where there is none."""
    state = slot_state(connection, name)
    return state is not None and state.active_pid is not None


def refuse_foreign(name: str, state: SlotState | None, *, read_by_us: bool) -> None:
    """Raises CONFLICT when the slot belongs to somebody else, CHAIN_BROKEN when it is lost."""
    if state is None:
        return
    if state.plugin != PLUGIN or not state.of_this_database:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"slot {name} exists for database {state.database} with plugin {state.plugin}",
            remedy="set another name in wal2lake.yaml, or drop that slot",
        )
    if state.active_pid is not None and not read_by_us:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"slot {name} is in use by pid {state.active_pid} ({state.application or 'unnamed'})",
            remedy="stop that client (another wal2lake?), or set another name in wal2lake.yaml",
        )
    readable(name, state)


def readable(name: str, state: SlotState | None) -> SlotState:
    """The slot; raises CHAIN_BROKEN for one that the connector can read on from no more."""
    if state is None:
        raise LostChangesError(
            f"slot {name} is gone: changes since it was dropped are lost", reason=Reason.SLOT_GONE
        )
    if state.wal_status == "lost":
        raise LostChangesError(
            f"slot {name} is lost: Postgres removed WAL that it needed", reason=Reason.SLOT_LOST
        )
    return state


def refuse_ahead(name: str, state: SlotState, sent: int) -> None:
    """Raises CHAIN_BROKEN where the slot is beyond ``sent``, which the connector stored.

    A slot follows the connector, which stores a place before it confirms it: one that is ahead was
    moved by somebody else. ``state`` has to be the older of the two. 0: nothing is known.
    """
    if (state.confirmed_lsn or 0) > sent > 0:
        raise LostChangesError(
            f"slot {name} begins after the connector's last event: it was made anew, or moved on "
            "by somebody else",
            reason=Reason.SLOT_RECREATED,
            detail="changes between the two are lost",
        )


def probe(url: str, name: str, seconds: float) -> None:
    """Make a temporary slot and let it go.

    Raises TIMEOUT naming the pids whose transactions were in the way; leaves nothing behind.
    """
    with connect(url) as maker, connect(url) as watcher, ThreadPoolExecutor(1) as pool:
        making = pool.submit(_make_and_drop, maker, f"{name}_probe")
        try:
            _await(making, watcher, maker.info.backend_pid, seconds)
        finally:
            if not making.done():
                maker.cancel_safe()


def drop(connection: Connection, name: str) -> None:
    with translated(f"dropping slot {name}"):
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %s",
            (name,),
        )


def _make_and_drop(maker: Connection, name: str) -> None:
    """Temporary as well, for when the process dies in between."""
    try:
        with translated("creating a replication slot"):
            maker.execute("SELECT pg_create_logical_replication_slot(%s, %s, true)", (name, PLUGIN))
            drop(maker, name)
    except CdcError as error:
        if isinstance(error.__context__, errors.ConfigurationLimitExceeded):
            error.remedy = "raise max_replication_slots, or drop a slot that nobody uses"
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
        blockers = [f"{found} (for {age})" for found, age in rows] or blockers
    raise CdcError(
        ErrorKind.TIMEOUT,
        f"no replication slot could be made within {seconds:g} s: a transaction is open",
        detail=f"in the way: pid {', '.join(blockers)}" if blockers else "",
        remedy="end it, or SELECT pg_terminate_backend(pid)",
    )
