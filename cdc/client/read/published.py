"""Published cuts for readers: which one is meant, and what in it may not be relied on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc.client.read.at import At, Latest, Numbered, UpToLsn, of_zone, parse
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.observe.defects import told
from cdc.tables import TableState

EQUAL: Final = TableState.STREAMING.value
"""The one state in which a table is the source's at the cut."""

WHAT_IT_SHOWS: Final = {
    TableState.SNAPSHOTTING.value: "its first snapshot is not complete",
    TableState.DEGRADED.value: "changes of it are in quarantine",
    TableState.RESNAPSHOTTING.value: "it is being read again and stands at an older cut",
    TableState.STOPPED.value: "it stopped at an older cut",
}


def cut_at(ledger: Ledger, at: str | int | datetime | None) -> LedgerRow | None:
    """The cut that ``at`` means (cdc/client/read/at.py); None where nothing is published yet.

    None means the newest. Raises CONFIG for what is no such thing, and where no cut is there.
    """
    wanted = _wanted(at)
    row = _found(ledger, wanted)
    if row is None and not isinstance(wanted, Latest):
        raise CdcError(
            ErrorKind.CONFIG,
            f"the ledger has no cut at {at}",
            detail=f"the oldest that is kept is {first.cut}" if (first := ledger.first()) else "",
            remedy="see the cuts there are: wal2lake cuts",
        )
    return row


def _wanted(at: str | int | datetime | None) -> At:
    if at is None:
        return Latest()
    if isinstance(at, datetime):
        return parse(of_zone(at, str(at)).isoformat())
    return parse(str(at))


def _found(ledger: Ledger, wanted: At) -> LedgerRow | None:
    if isinstance(wanted, Latest):
        return ledger.last()
    if isinstance(wanted, Numbered):
        return ledger.cut(wanted.cut)
    if isinstance(wanted, UpToLsn):
        return ledger.up_to_lsn(wanted.lsn)
    return ledger.up_to_time(wanted.time)


def is_flagged(entry: TableEntry) -> bool:
    """Whether the table does not show the source at the cut."""
    return entry.state != EQUAL


def flagged(entries: Iterable[TableEntry]) -> list[TableEntry]:
    return [entry for entry in entries if is_flagged(entry)]


def warning(entry: TableEntry, cut: int) -> str:
    """What a reader of a flagged table has to know."""
    what = WHAT_IT_SHOWS.get(entry.state, entry.state)
    reason = f": {entry.reason}" if entry.reason else ""
    return f"{entry.table} is not the source's table at cut {cut}: {what}{reason}"


def open_version(path: str, version: int) -> DeltaTable:
    """The Delta table at a version; raises CONFIG where it is not there any more."""
    try:
        return DeltaTable(path, version=version)
    except DeltaError as error:
        raise CdcError(
            ErrorKind.CONFIG,
            f"version {version} of {path} is not there any more",
            detail=told(error),
            remedy="choose a later cut; job.vacuum_retention_hours says how long old ones stay",
        ) from None
