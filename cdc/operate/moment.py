"""The source and the lake at one moment: what ``verify`` compares and a reading begins with.

The job is held, a temporary slot gives a snapshot of the source and the LSN it stands at, the job
is asked for a cut that ends exactly there, and goes on. Inside, the source is read as it was then.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from psycopg import IsolationLevel, sql

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake import epochs
from cdc.lake.layout import epochs_path, ledger_path
from cdc.lake.ledger import Ledger, LedgerRow
from cdc.operate import requests
from cdc.operate.cuts import wait_for_cut
from cdc.operate.hang import where_it_hangs
from cdc.operate.render import SETTINGS
from cdc.operate.requests import Request
from cdc.source import barrier
from cdc.source.catalog import SourceTable
from cdc.source.postgres import Connection, connect, translated
from cdc.source.prepare import identifier
from cdc.source.snapshot import exported_snapshot
from cdc.source.structure_notes import structure_of
from cdc.stack.endpoints import Endpoints
from cdc.tables import TableId

SNAPSHOT_SECONDS: Final = 60.0
"""How long an open transaction in the source may delay the snapshot: the job publishes nothing
meanwhile. The hold lasts longer, because connecting takes time too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """``connection`` reads the source as it was at ``lsn``; ``cut`` is the lake there."""

    connection: Connection
    lsn: int
    cut: LedgerRow
    structures: Mapping[int, str]
    """By OID, of the tables that were asked for; they do not change while this is open."""


def nothing(_: object) -> None:
    """Hears and does nothing."""


@contextmanager
def moment(
    config: Config,
    endpoints: Endpoints,
    *,
    timeout: float,
    tables: Mapping[int, TableId] | None = None,
    tell: Callable[[str], None] = nothing,
    asking: Callable[[str], None] = nothing,
    looking: Callable[[LedgerRow | None], None] = nothing,
) -> Iterator[Moment]:
    """Both sides at one moment, as long as the block lasts.

    ``tables`` (by OID) are locked against changes of their structure. ``tell`` hears what is waited
    for, ``asking`` the id of the request before the job can see it, ``looking`` every look at the
    ledger; what it raises ends the waiting. Raises TIMEOUT when the job gives no cut in time,
    CONFLICT where a table was rewritten in the very moment.
    """
    tell("taking a snapshot of the source")
    with (
        _hold(config) as hold,
        exported_snapshot(endpoints.source_url, SNAPSHOT_SECONDS) as snapshot,
        connect(
            endpoints.source_url, answer_seconds=config.source.read_timeout_seconds
        ) as connection,
    ):
        enter(connection, snapshot.name)
        structures = _locked(connection, endpoints, tables or {})
        tell("waiting for the cut at the snapshot")
        asking(hold)
        row = _cut_at(config, endpoints, hold, snapshot.lsn, timeout=timeout, looking=looking)
        yield Moment(connection=connection, lsn=snapshot.lsn, cut=row, structures=structures)


@contextmanager
def as_it_was(connection: Connection, now: Connection, table: SourceTable) -> Iterator[bool]:
    """Whether the moment's ``connection`` can read the table as it was; locked in the block.

    A snapshot does not hide that a table was truncated, rewritten, altered or dropped since: that
    is found out by ``now``, a connection without one. A table that was gone at the moment has no
    rows. The lock (ACCESS SHARE) is given back at the end of the block.
    """
    with connection.transaction(force_rollback=True):
        yield not table.oid or _is_unaltered(connection, now, table)


def _is_unaltered(connection: Connection, now: Connection, table: SourceTable) -> bool:
    before = structure_of(connection, table.oid)
    if structure_of(now, table.oid) != before:
        return False  # it may be gone: there may be nothing to lock
    _lock(connection, table.table)
    return structure_of(now, table.oid) == before


def _lock(connection: Connection, table: TableId) -> None:
    with translated(f"locking {table}"):
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(identifier(table)))


@contextmanager
def _hold(config: Config) -> Iterator[str]:
    """Keep the job from publishing a cut beyond a snapshot that is not taken yet."""
    folder = requests.directory(config.state_dir)
    now = time.time()
    requests.remove_expired(folder, now)
    request_id, expires_at = uuid.uuid4().hex, now + requests.MOST_HOLD_SECONDS
    with requests.alive(folder, request_id):
        requests.write(folder, Request(id=request_id, expires_at=expires_at))
        try:
            yield request_id
        finally:
            requests.remove(folder, request_id)


def enter(connection: Connection, snapshot: str) -> None:
    """Read from now on as of the exported snapshot, and print as ``render`` expects."""
    connection.rollback()
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
    for name, value in SETTINGS.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))


def _locked(
    connection: Connection, endpoints: Endpoints, tables: Mapping[int, TableId]
) -> dict[int, str]:
    """The structures as of the snapshot, which hold now too and until the transaction ends.

    Between the snapshot and the lock a table may have been altered, or truncated, which a
    snapshot does not hide.
    """
    found: dict[int, str] = {}
    for oid, table in tables.items():
        _lock(connection, table)
        found[oid] = structure_of(connection, oid) or ""
    with connect(endpoints.source_url) as fresh:
        changed = [t for oid, t in tables.items() if structure_of(fresh, oid) != found[oid]]
    if changed:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the structure of {changed[0]} changed while it was about to be read",
            remedy="try again when nobody alters or truncates it",
        )
    return found


def _cut_at(
    config: Config,
    endpoints: Endpoints,
    hold: str,
    lsn: int,
    *,
    timeout: float,
    looking: Callable[[LedgerRow | None], None],
) -> LedgerRow:
    """Ask for the cut at the LSN and wait for it; let the job go on as soon as it is there."""
    folder = requests.directory(config.state_dir)
    ledger = Ledger(ledger_path(config))
    last, epoch = ledger.last(), epochs.number(epochs.last(epochs_path(config)))
    requests.write(folder, Request(id=hold, expires_at=time.time() + timeout, bound=lsn))
    with connect(endpoints.source_url) as connection:
        # A commit beyond the snapshot: by it the job knows that nothing before it is on its way.
        barrier.touch(connection, hold)
    row = wait_for_cut(
        ledger,
        lambda row: row.request == hold or row.reaches(lsn + 1, epoch),
        after=last.cut - 1 if last else 0,
        timeout=timeout,
        tell=looking,
    )
    requests.remove(folder, hold)
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the job published no cut at the snapshot within {timeout:g} s",
            detail=where_it_hangs(config),
            remedy="wal2lake status says what it is at; try again when it follows",
        )
    if row.request != hold:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"cut {row.cut} is beyond the snapshot, so none will come that ends there",
            remedy="run it again; this process may have been suspended",
        )
    if row.lsn is not None and row.lsn > lsn:
        raise CdcError(
            ErrorKind.INTERNAL,
            f"cut {row.cut} was given for a snapshot that it is beyond",
            remedy="run it again; this process may have been suspended",
        )
    return row


def tables_of(row: LedgerRow) -> Sequence[TableId]:
    return [TableId.parse(entry.table) for entry in row.tables]
