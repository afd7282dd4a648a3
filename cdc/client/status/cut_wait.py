"""Wait for a published cut, for ``sync``, ``verify`` and readings."""

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
    """Return the first cut after number ``after`` for which ``reached`` holds; None on timeout.

    Every cut is examined, even if a newer one exists already. ``timeout`` is in seconds. ``tell``
    is called with the newest cut at each look.
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
