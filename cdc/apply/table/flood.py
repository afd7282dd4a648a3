"""When a batch refuses so much that the cause is not in single events: the table is stopped then.

A changed connector, a wrong registry or a stranger who writes to the topic would otherwise drain a
whole table into the quarantine, one event after the other.
"""

from typing import Final

from cdc.config import Job
from cdc.tables import TableId

FACTS: Final = (
    "count(*) AS events",
    "count(_reason) AS refused",
    "min(IF(_reason IS NULL, NULL, offset)) AS first_offset",
    "min_by(_reason, IF(_reason IS NULL, NULL, offset)) AS first_reason",
)
"""SQL over one row per event: its ``offset`` and ``_reason``, which is null where it is kept."""

# Between two kept events the count of those kept does not move: refused ones in a row share it.
ISLANDS: Final = "count_if(_reason IS NULL) OVER (PARTITION BY offset < 0 ORDER BY offset)"


def possible(refused: int, policy: Job) -> bool:
    """Whether so many refused events can be too many; else nothing more need be known."""
    return refused > policy.quarantine_limit_run


def flooded(events: int, refused: int, run: int, policy: Job) -> str | None:
    """Why the batch is not applied; None where it may refuse what it refuses.

    ``run`` is the largest number of refused events in a row. Too many are more than
    ``quarantine_limit_run`` in a row, or more than that in all whose share of the events is also
    above ``quarantine_limit_share``.
    """
    if not possible(refused, policy):
        return None
    share = refused / events
    said = f"{refused:,} of {events:,} events of a batch ({share:.1%}) cannot be kept"
    if share > policy.quarantine_limit_share:
        return said
    return f"{said}, {run:,} of them in a row" if run > policy.quarantine_limit_run else None


def remedy(table: TableId | str) -> str:
    """What can be done about a table that was stopped for this."""
    return (
        "put right what writes such events, or raise job.quarantine_limit_run, and restart the "
        f"job; wal2lake quarantine list {table} shows what was refused before; wal2lake "
        f"resnapshot {table} reads the table again without these events"
    )
