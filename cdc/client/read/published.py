"""Find the published cut that a reader means, and the tables in it that cannot be relied on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from cdc.client.read.at import At, Latest, Numbered, UpToLsn, of_zone, parse
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.tables import TableState

EQUAL: Final = TableState.STREAMING.value
"""The only state in which a table equals the source at the cut."""

WHAT_IT_SHOWS: Final = {
    TableState.SNAPSHOTTING.value: "its first snapshot is not complete",
    TableState.DEGRADED.value: "some of its changes are in quarantine",
    TableState.RESNAPSHOTTING.value: "it is being read again and is still at an older cut",
    TableState.STOPPED.value: "it stopped at an older cut",
    TableState.BUILDING.value: "it is being calculated for the first time",
    TableState.LAGGING.value: "it is still at an older cut",
}

Entry = TableEntry | DerivedEntry


def cut_at(ledger: Ledger, at: str | int | datetime | None) -> LedgerRow | None:
    """Return the cut that ``at`` names (see cdc/client/read/at.py); None for the newest.

    Returns None if nothing is published yet. Raises CONFIG for an ``at`` that is invalid or names
    no cut of the ledger.
    """
    wanted = _wanted(at)
    row = _look_up(ledger, wanted)
    if row is None and not isinstance(wanted, Latest):
        raise CdcError(
            ErrorKind.CONFIG,
            f"the ledger has no cut at {at}",
            detail=f"the oldest that is kept is {first.cut}" if (first := ledger.first()) else "",
            remedy="choose one of those that wal2lake cuts lists",
        )
    return row


def _wanted(at: str | int | datetime | None) -> At:
    if at is None:
        return Latest()
    if isinstance(at, datetime):
        return parse(of_zone(at, str(at)).isoformat())
    return parse(str(at))


def _look_up(ledger: Ledger, wanted: At) -> LedgerRow | None:
    if isinstance(wanted, Latest):
        return ledger.last()
    if isinstance(wanted, Numbered):
        return ledger.cut(wanted.cut)
    if isinstance(wanted, UpToLsn):
        return ledger.up_to_lsn(wanted.lsn)
    return ledger.up_to_time(wanted.time)


def is_flagged(entry: Entry) -> bool:
    """Return whether the table may differ from the source at the cut."""
    return entry.state != EQUAL


def flagged(entries: Iterable[Entry]) -> list[Entry]:
    """Return the tables that may differ from the source at the cut."""
    return [entry for entry in entries if is_flagged(entry)]


def warning(entry: Entry, cut: int) -> str:
    """Return a warning for readers of a flagged table."""
    reason = f": {entry.reason}" if entry.reason else ""
    if isinstance(entry, DerivedEntry) and entry.state == TableState.DEGRADED.value:
        return f"{entry.table} equals its query at cut {cut}, but over rows that differ{reason}"
    what = WHAT_IT_SHOWS.get(entry.state, entry.state)
    equal = "its query" if isinstance(entry, DerivedEntry) else "the source"
    return f"{entry.table} does not equal {equal} at cut {cut}: {what}{reason}"
