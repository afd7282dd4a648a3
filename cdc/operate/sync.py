"""Wait until everything committed in the source so far can be read in the lake."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake import epochs
from cdc.lake.layout import epochs_path, ledger_path, log_path
from cdc.lake.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.progress import landed_position
from cdc.operate.cuts import wait_for_cut
from cdc.operate.hang import where_it_hangs
from cdc.source import barrier
from cdc.source.known import known_origin
from cdc.source.origin import origin, refuse_other
from cdc.source.postgres import connect
from cdc.stack.endpoints import Endpoints
from cdc.tables import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The barrier and the cut that passed it."""

    lsn: int
    cut: LedgerRow


def sync(
    config: Config,
    endpoints: Endpoints,
    *,
    timeout: float,
    tell: Callable[[int | None, int], None] = lambda _at, _to: None,
) -> Synced:
    """Raises TIMEOUT saying where it hangs, TABLE_STOPPED naming a table that does not follow.

    Raises CHAIN_BROKEN where the source is not the one that the lake follows: an LSN of the one
    says nothing of the other.
    ``tell`` hears the position of the lake and the one that is waited for.
    """
    ledger = Ledger(ledger_path(config))
    last = ledger.last()
    with connect(endpoints.source_url) as connection:
        landed, epoch = landed_position(log_path(config)), epochs.last(epochs_path(config))
        refuse_other(known_origin(landed, epoch), origin(connection), 0)
        lsn = barrier.current_lsn(connection)
        # A commit beyond the position: without one an idle source would never pass it.
        barrier.touch(connection, uuid.uuid4().hex)
    row = wait_for_cut(
        ledger,
        lambda row: row.reaches(lsn, epochs.number(epoch)) and not _waits(row),
        after=last.cut if last else 0,
        timeout=timeout,
        tell=lambda row: tell(row.lsn if row else None, lsn),
    )
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the lake did not reach the source within {timeout:g} s",
            detail=where_it_hangs(config),
            remedy="wal2lake status; give it longer with --timeout",
        )
    _refuse_stopped(row)
    return Synced(lsn=lsn, cut=row)


def _waits(row: LedgerRow) -> bool:
    """Whether a table is at an older cut while it is read again."""
    return any(entry.state == TableState.RESNAPSHOTTING.value for entry in row.tables)


def _refuse_stopped(row: LedgerRow) -> None:
    unwell = {TableState.STOPPED.value, TableState.DEGRADED.value}
    found = [entry for entry in row.tables if entry.state in unwell]
    if found:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"the lake is at the source's position without {found[0].table}: {found[0].state}",
            detail="; ".join(f"{entry.table}: {_why(entry)}" for entry in found),
            remedy=_remedy(found[0]),
        )


def _remedy(entry: TableEntry) -> str:
    """That of the table's own reason where it has one; a degraded table's is in quarantine."""
    if entry.state == TableState.DEGRADED.value:
        return f"wal2lake quarantine list {entry.table}"
    remedy = entry.reason.partition("; remedy: ")[2]
    return remedy or f"wal2lake status says more of {entry.table}"


def _why(entry: TableEntry) -> str:
    return entry.reason or f"refused events in quarantine: {entry.refused}"
