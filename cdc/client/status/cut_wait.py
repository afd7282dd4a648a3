"""Waiting for a cut: what ``sync`` and ``verify`` have in common."""

from collections.abc import Callable

from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.waiting import poll

POLL_SECONDS = 0.2


def wait_for_cut(
    ledger: Ledger,
    reached: Callable[[LedgerRow], bool],
    *,
    after: int,
    timeout: float,
    tell: Callable[[LedgerRow | None], None] = lambda _: None,
) -> LedgerRow | None:
    """The first cut above ``after`` that the condition holds for; None at the end of the time.

    Every cut is looked at, also one that the next has followed already. ``tell`` hears of the
    newest cut each time we looked.
    """
    seen = after

    def look() -> LedgerRow | None:
        nonlocal seen
        last = ledger.last()
        tell(last)
        if last is None or last.cut <= seen:
            return None
        for row in ledger.rows(after=seen):
            if reached(row):
                return row
            seen = row.cut
        return None

    return poll(look, lambda row: row is not None, every=POLL_SECONDS, seconds=timeout)
