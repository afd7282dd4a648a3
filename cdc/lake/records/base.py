"""The base of a job's first cut: the last one that was published, or the beginning of an epoch."""

from dataclasses import replace
from datetime import UTC, datetime

from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import LedgerRow, TableEntry


def base_of(last: LedgerRow | None, epoch: Epoch | None) -> LedgerRow:
    """Where the next cut begins; ``epoch`` is the lake's newest, None in its first.

    At the beginning of an epoch that is after all that is left behind. Its lsn is None: positions
    of the source before it may be beyond those to come.
    """
    number = epochs.number(epoch)
    if last is None:
        last = nothing_applied(number)
    elif last.epoch >= number:
        return last
    if epoch is None:
        return last
    return replace(
        last,
        epoch=number,
        lsn=None,
        committed_at=None,
        transactions=0,
        request=None,
        covers_lsn=None,
        marker_offset=epoch.left_of_markers,
        notes_offset=epoch.left_of_notes,
        tables=tuple(_beyond(entry, epoch) for entry in last.tables),
    )


def nothing_applied(epoch: int) -> LedgerRow:
    """The base of the first cut; never written."""
    return LedgerRow(
        cut=0,
        epoch=epoch,
        lsn=None,
        committed_at=None,
        published_at=datetime.now(UTC),
        transactions=0,
    )


def _beyond(entry: TableEntry, epoch: Epoch) -> TableEntry:
    """A topic that is not known of has what the last cut says; offsets of others say nothing."""
    return replace(entry, offset=epoch.left_of(entry.table, entry.offset))
