"""Bring source and lake to the same moment, for ``verify`` and for readings.

The job is held, a temporary slot exports a snapshot of the source with its LSN, and the job is
asked for a cut that ends exactly there; then it continues. The source is read as of that snapshot.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from psycopg import IsolationLevel, sql

from cdc.client.status.cut_wait import wait_for_cut
from cdc.client.status.diagnosis import where_it_hangs
from cdc.config import Config, masks_of
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import epochs_path, ledger_path
from cdc.lake.records import epochs
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.source.catalog.catalog import SourceTable
from cdc.source.notes.triggers import structure_of
from cdc.source.rows.masking import SALT
from cdc.source.server import barrier
from cdc.source.server.connection import Connection, connect, identifier, translated
from cdc.source.server.printing import READING
from cdc.source.server.snapshot import exported_snapshot
from cdc.state import requests
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.state.requests import Request
from cdc.tables import TableId

SNAPSHOT_SECONDS: Final = 60.0
"""How long an open transaction in the source may delay the snapshot. The job publishes nothing in
the meantime. The hold itself lasts longer, because connecting takes time too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Source and lake at the same moment.

    ``connection`` reads the source as of ``lsn``; ``cut`` is the lake's state at that LSN.
    """

    connection: Connection
    lsn: int
    cut: LedgerRow
    structures: Mapping[int, str]
    """By OID, of the tables that were given; they cannot change while the moment lasts."""


def do_nothing(_: object) -> None:
    """Do nothing: the default callback."""


@contextmanager
def moment(
    pipeline: Pipeline,
    *,
    timeout: float,
    tables: Mapping[int, TableId] | None = None,
    tell: Callable[[str], None] = do_nothing,
    on_request: Callable[[str], None] = do_nothing,
    on_look: Callable[[LedgerRow | None], None] = do_nothing,
) -> Iterator[Moment]:
    """Keep source and lake at the same moment for the length of the block.

    ``tables`` (by OID) are locked against changes of their structure. ``timeout`` is in seconds.
    ``tell`` is called with what is waited for, ``on_request`` with the id of the request before the
    job can see it, ``on_look`` with the newest cut at each look; what ``on_look`` raises ends the
    wait.
    Raises TIMEOUT when the job publishes no such cut in time, CONFLICT when one of the tables was
    rewritten just then.
    """
    endpoints = pipeline.endpoints
    tell("taking a snapshot of the source")
    with _hold(pipeline.config) as hold, _entered(pipeline) as (connection, lsn):
        structures = _locked(connection, endpoints, tables or {})
        tell("waiting for the cut at the snapshot")
        on_request(hold)
        row = _cut_at(pipeline, hold, lsn, timeout=timeout, on_look=on_look)
        yield Moment(connection=connection, lsn=lsn, cut=row, structures=structures)


@contextmanager
def _entered(pipeline: Pipeline) -> Iterator[tuple[Connection, int]]:
    """Yield a connection in a new snapshot, and the LSN of that.

    The slot that exported it is gone by then: it would retain WAL for as long as rows are read.
    """
    url, silence = pipeline.endpoints.source_url, pipeline.config.source.read_timeout_seconds
    with connect(url, answer_seconds=silence) as connection:
        with exported_snapshot(url, SNAPSHOT_SECONDS) as snapshot:
            enter_snapshot(connection, snapshot.name, masks_of(pipeline.config.source).salt)
        yield connection, snapshot.lsn


@contextmanager
def locked_if_unaltered(
    connection: Connection, now: Connection, table: SourceTable
) -> Iterator[bool]:
    """Yield whether the moment's ``connection`` can read the table as it was, and lock it.

    A snapshot does not protect from a later TRUNCATE, rewrite, ALTER or DROP of the table. ``now``,
    a connection without the snapshot, shows whether there was one. A table that did not exist at
    the moment (no OID) counts as readable and has no rows. The lock (ACCESS SHARE) is released at
    the end of the block.
    """
    with connection.transaction(force_rollback=True):
        yield not table.oid or _is_unaltered(connection, now, table)


def _is_unaltered(connection: Connection, now: Connection, table: SourceTable) -> bool:
    before = structure_of(connection, table.oid)
    if structure_of(now, table.oid) != before:
        return False  # the table may have been dropped, so do not try to lock it
    _lock(connection, table.table)
    return structure_of(now, table.oid) == before


def _lock(connection: Connection, table: TableId) -> None:
    with translated(f"locking {table}"):
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(identifier(table)))


@contextmanager
def _hold(config: Config) -> Iterator[str]:
    """Keep the job from publishing a cut beyond the snapshot before it is taken."""
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


def enter_snapshot(connection: Connection, snapshot: str, salt: str = "") -> None:
    """Make the connection read as of the exported snapshot and print as ``render`` expects.

    With ``salt`` it can hash what ``source.columns`` hashes.
    """
    connection.rollback()
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
    salted = {SALT: salt} if salt else {}
    for name, value in {**READING, **salted}.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))


def _locked(
    connection: Connection, endpoints: Endpoints, tables: Mapping[int, TableId]
) -> dict[int, str]:
    """Lock the tables and return their structures, which stay as they are in the transaction.

    Raises CONFLICT for a table that was altered or truncated between the snapshot and the lock,
    because the snapshot does not protect from that.
    """
    structures: dict[int, str] = {}
    for oid, table in tables.items():
        _lock(connection, table)
        structures[oid] = structure_of(connection, oid) or ""
    with connect(endpoints.source_url) as fresh:
        changed = [t for oid, t in tables.items() if structure_of(fresh, oid) != structures[oid]]
    if changed:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the structure of {changed[0]} changed just before it was read",
            remedy="try again while nobody alters or truncates the table",
        )
    return structures


def _cut_at(
    pipeline: Pipeline,
    hold: str,
    lsn: int,
    *,
    timeout: float,
    on_look: Callable[[LedgerRow | None], None],
) -> LedgerRow:
    """Ask for the cut at the LSN and wait for it; release the job as soon as it is published."""
    config = pipeline.config
    folder = requests.directory(config.state_dir)
    ledger = Ledger(ledger_path(config))
    last, epoch = ledger.last(), epochs.number(epochs.last(epochs_path(config)))
    requests.write(folder, Request(id=hold, expires_at=time.time() + timeout, bound=lsn))
    with connect(pipeline.endpoints.source_url) as connection:
        # This commit after the snapshot tells the job that everything before it has arrived.
        barrier.touch(connection, hold)
    row = wait_for_cut(
        ledger,
        lambda row: row.request == hold or row.reaches(lsn + 1, epoch),
        after=last.cut - 1 if last else 0,
        timeout=timeout,
        tell=on_look,
    )
    requests.remove(folder, hold)
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the job published no cut at the snapshot within {timeout:g} s",
            detail=where_it_hangs(config),
            remedy="check wal2lake status; try again once it has caught up",
        )
    if row.request != hold:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"cut {row.cut} is past the snapshot, so no cut will end at it any more",
            remedy="run the command again; this process may have been suspended",
        )
    if row.lsn is not None and row.lsn > lsn:
        raise CdcError(
            ErrorKind.INTERNAL,
            f"cut {row.cut} was published for this snapshot, but is past it",
            remedy="run the command again; this process may have been suspended",
        )
    return row


def tables_of(row: LedgerRow) -> Sequence[TableId]:
    """Return the tables of the cut."""
    return [TableId.parse(entry.table) for entry in row.tables]
