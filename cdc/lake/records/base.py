"""Find the base of a job's first cut: the last published cut, or the beginning of an epoch."""

from dataclasses import replace
from datetime import UTC, datetime

from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import LedgerRow, TableEntry


def base_of(last: LedgerRow | None, epoch: Epoch | None) -> LedgerRow:
    """Return the cut that the next one follows.

    ``last`` is the last published cut; ``epoch`` is the lake's newest, None in its first epoch.
    At the beginning of an epoch the base lies after everything that is left behind. Its LSN is
    None then, because earlier LSNs of the source may be higher than those to come.
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
        marker_offset=epoch.left_behind_markers,
        notes_offset=epoch.left_behind_notes,
        tables=tuple(_beyond(entry, epoch) for entry in last.tables),
        derived=(),  # the epoch's first cut has them
    )


def nothing_applied(epoch: int) -> LedgerRow:
    """Return the base of a lake's first cut; it is never written to the ledger."""
    return LedgerRow(
        cut=0,
        epoch=epoch,
        lsn=None,
        committed_at=None,
        published_at=datetime.now(UTC),
        transactions=0,
    )


def _beyond(entry: TableEntry, epoch: Epoch) -> TableEntry:
    """Keep the offset of the last cut only for a topic that the epoch does not list."""
    return replace(entry, offset=epoch.left_behind_of_table(entry.table, entry.offset))
