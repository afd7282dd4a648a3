"""A transaction that ended and of which nothing more lands: said aloud, since no cut passes it."""

from collections.abc import Callable, Mapping

from cdc.apply.rounds.cut import Cut

Missing = Mapping[str, tuple[int, int]]


class Unfilled:
    """Told of every look for a cut that found none; ``clock`` gives seconds."""

    def __init__(self, patience_seconds: float, clock: Callable[[], float]) -> None:
        self._patience = patience_seconds
        self._clock = clock
        self._seen: tuple[int | None, Missing] = (None, {})
        self._since = 0.0

    def look(self, cut: Cut | None) -> str:
        """The alarm, once nothing more of the transaction came for that long; else nothing.

        None: a cut was found, or nothing waits.
        """
        seen = (None, {}) if cut is None else (cut.incomplete, cut.missing)
        if seen != self._seen:
            self._seen, self._since = seen, self._clock()
        waited = self._clock() - self._since
        if seen[0] is None or waited < self._patience:
            return ""
        return _alarm(*seen, self._patience)


def _alarm(txid: int | None, missing: Missing, seconds: float) -> str:
    counts = ", ".join(
        f"{have} of {expected} events in {topic}"
        for topic, (have, expected) in sorted(missing.items())
    )
    return (
        f"transaction {txid} ended, and nothing more of it has landed for {seconds:g} s: {counts}; "
        "no cut can pass it. remedy: see that the connector runs and that the topic keeps its "
        "events; where they are lost, wal2lake down and wal2lake up --new-epoch"
    )
