"""Wait until everything committed in the source so far can be read in the lake."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from cdc.capture.recorded_origin import recorded_origin
from cdc.client.status.cut_wait import wait_for_cut
from cdc.client.status.diagnosis import where_it_hangs
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import epochs_path, ledger_path, log_path
from cdc.lake.records import epochs
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.table.positions import landed_position
from cdc.source.server import barrier
from cdc.source.server.connection import connect
from cdc.source.server.origin import origin, refuse_other
from cdc.state.pipeline import Pipeline
from cdc.tables import BEING_READ, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """Holds what ``sync`` found: the barrier and the first cut that holds everything before it."""

    lsn: int  # the source's position when ``sync`` was called
    cut: LedgerRow


def sync(
    pipeline: Pipeline,
    *,
    timeout: float,
    tell: Callable[[int | None, int], None] = lambda _at, _to: None,
) -> Synced:
    """Wait for a cut that holds every commit made before the call, with all tables following.

    Derived tables hold them too, unless they are stopped or without rows.

    ``timeout`` is in seconds. ``tell`` is called with the lake's LSN (None before the first cut)
    and the LSN waited for. Raises TIMEOUT with a diagnosis in the detail, TABLE_STOPPED for a table
    that is stopped or degraded, and CHAIN_BROKEN when this source is not the one that the lake
    follows, because their LSNs cannot be compared.
    """
    config = pipeline.config
    ledger = Ledger(ledger_path(config))
    last = ledger.last()
    with connect(pipeline.endpoints.source_url) as connection:
        landed, epoch = landed_position(log_path(config)), epochs.last(epochs_path(config))
        refuse_other(recorded_origin(landed, epoch), origin(connection), 0)
        lsn = barrier.current_lsn(connection)
        # Commit something after the position: otherwise an idle source would never pass it.
        barrier.touch(connection, uuid.uuid4().hex)
    row = wait_for_cut(
        ledger,
        Goal(lsn, epochs.number(epoch)).is_reached,
        after=last.cut if last else 0,
        timeout=timeout,
        tell=lambda row: tell(row.lsn if row else None, lsn),
    )
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the lake did not catch up with the source within {timeout:g} s",
            detail=where_it_hangs(config),
            remedy="see wal2lake status; allow more time with --timeout",
        )
    _refuse_stopped(row)
    return Synced(lsn=lsn, cut=row)


class Goal:
    """Finds the first cut from which everything up to an LSN can be read, in order of the cuts."""

    def __init__(self, lsn: int, epoch: int) -> None:
        self._lsn, self._epoch = lsn, epoch
        self._first: int | None = None  # the first cut that has it in the captured tables

    def is_reached(self, row: LedgerRow) -> bool:
        """Return whether the cut is one; a derived table may be late, but has to have it too."""
        if self._first is None and row.reaches(self._lsn, self._epoch):
            self._first = row.cut
        if self._first is None or _waits(row):
            return False
        late = TableState.LAGGING.value
        return all(one.at_cut >= self._first for one in row.derived if one.state == late)


def _waits(row: LedgerRow) -> bool:
    """Return whether a table stays at an older cut because its rows are being read."""
    return any(entry.state in BEING_READ for entry in row.tables)


def _refuse_stopped(row: LedgerRow) -> None:
    unwell = {TableState.STOPPED.value, TableState.DEGRADED.value}
    lacking = [entry for entry in row.tables if entry.state in unwell]
    if lacking:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"the lake has caught up, except {lacking[0].table}, which is {lacking[0].state}",
            detail="; ".join(f"{entry.table}: {_why(entry)}" for entry in lacking),
            remedy=_remedy(lacking[0]),
        )


def _remedy(entry: TableEntry) -> str:
    """Return the remedy in the table's reason, if it has one; for a degraded table, quarantine."""
    if entry.state == TableState.DEGRADED.value:
        return f"wal2lake quarantine list {entry.table}"
    remedy = entry.reason.partition("; remedy: ")[2]
    return remedy or f"see wal2lake status for {entry.table}"


def _why(entry: TableEntry) -> str:
    return entry.reason or f"refused events in quarantine: {entry.refused}"
