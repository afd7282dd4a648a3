"""Raises an alarm for a committed transaction whose events stop arriving: no cut can pass it."""

from collections.abc import Callable, Mapping

from cdc.apply.rounds.whole_transactions import Cut

Missing = Mapping[str, tuple[int, int]]
"""Events that have landed and events expected, by topic."""


class StuckTransactionAlarm:
    """Watches the searches for a cut that find none; ``clock`` gives seconds."""

    def __init__(self, patience_seconds: float, clock: Callable[[], float]) -> None:
        self._patience = patience_seconds
        self._clock = clock
        self._waiting_for: tuple[int | None, Missing] = (None, {})
        self._since = 0.0

    def look(self, cut: Cut | None) -> str:
        """Return the alarm where no event of the transaction came for the patience, else "".

        ``cut`` is what a search came to; None where it found a cut or nothing waits.
        """
        waiting_for = (None, {}) if cut is None else (cut.incomplete, cut.missing)
        if waiting_for != self._waiting_for:
            self._waiting_for, self._since = waiting_for, self._clock()
        waited = self._clock() - self._since
        if waiting_for[0] is None or waited < self._patience:
            return ""
        return _alarm(*waiting_for, self._patience)


def _alarm(txid: int | None, missing: Missing, seconds: float) -> str:
    counts = ", ".join(
        f"{have} of {expected} events in {topic}"
        for topic, (have, expected) in sorted(missing.items())
    )
    return (
        f"transaction {txid} committed, but none of its missing events has landed for "
        f"{seconds:g} s: {counts}; publishing is blocked. remedy: check that the connector runs "
        "and that the topic still has these events; if they are lost, run wal2lake down and "
        "wal2lake up --new-epoch"
    )
