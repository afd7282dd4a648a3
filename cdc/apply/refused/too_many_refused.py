"""Decides when a batch refuses too many events: then the table stops.

A changed connector, a wrong registry or a stranger who writes to the topic would otherwise drain a
whole table into the quarantine, one event after the other.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.tables import TableId

FACTS: Final = (
    "count(*) AS events",
    "count(_reason) AS refused",
    "min(IF(_reason IS NULL, NULL, offset)) AS first_offset",
    "min_by(_reason, IF(_reason IS NULL, NULL, offset)) AS first_reason",
)
"""SQL over one row per event: its ``offset`` and its ``_reason``, null for an event kept."""

# The count of kept events does not move between two of them: refused ones in a row share it.
ISLANDS: Final = "count_if(_reason IS NULL) OVER (PARTITION BY offset < 0 ORDER BY offset)"


def can_be_too_many(refused: int, policy: Job) -> bool:
    """Return whether so many refused events can be too many; if not, nothing more is looked at."""
    return refused > policy.quarantine_limit_run


def why_too_many(events: int, refused: int, run: int, policy: Job) -> str | None:
    """Return why the batch is not applied; None where it may refuse these events.

    ``run`` is the largest number of refused events in a row. Too many are more than
    ``quarantine_limit_run`` in a row, or more than that in all whose share of the events is also
    above ``quarantine_limit_share``.
    """
    if not can_be_too_many(refused, policy):
        return None
    share = refused / events
    summary = f"{refused:,} of {events:,} events of a batch ({share:.1%}) cannot be kept"
    if share > policy.quarantine_limit_share:
        return summary
    return f"{summary}, {run:,} of them in a row" if run > policy.quarantine_limit_run else None


def stop_for_too_many(
    table: TableId, events: Sequence[int], reasons: Mapping[int, str], policy: Job
) -> None:
    """Raise TABLE_STOPPED if more of the events are refused than quarantine may take.

    ``events`` are the offsets of a batch in order, ``reasons`` those of the refused ones.
    """
    if not can_be_too_many(len(reasons), policy):
        return
    runs = [len(list(run)) for bad, run in groupby(events, key=reasons.__contains__) if bad]
    why = why_too_many(len(events), len(reasons), max(runs), policy)
    if why is not None:
        raise stopped(table, why, min(reasons), reasons[min(reasons)])


def stopped(table: TableId, why: str, offset: int, reason: str) -> CdcError:
    """Return the error that stops the table, with the first refused event."""
    message = f"{why}, the first at offset {offset}: {reason}"
    return CdcError(ErrorKind.TABLE_STOPPED, message, remedy=remedy(table))


def remedy(table: TableId | str) -> str:
    """Return what to do about a table that was stopped for this."""
    return (
        "fix what writes such events, or raise job.quarantine_limit_run, and restart the job; "
        f"wal2lake quarantine list {table} shows events refused earlier; wal2lake resnapshot "
        f"{table} reads the table again without these events"
    )
