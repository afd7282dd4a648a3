"""Keep what the last cuts say of freshness: how long commits took to become readable."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, Final

from cdc.observe.freshness import percentile
from cdc.observe.stage_times import Histogram

WINDOW_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Holds the seconds from commit to cut in the last minute; NaN without a transaction in it."""

    transactions: int
    p50: float
    p99: float


class RecentFreshness:
    """Keeps the transactions of the last minute's cuts, and a histogram of all.

    Any thread may use it. ``clock`` gives seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._all = Histogram()
        self._cuts: deque[tuple[float, list[float]]] = deque()

    def published(self, committed_at: Iterable[datetime], at: datetime) -> None:
        """Take in a cut that was published at ``at``, with when its transactions committed.

        Commit times come from the source's clock, so that the two clocks' difference is included.
        """
        seconds = [(at - committed).total_seconds() for committed in committed_at]
        with self._lock:
            self._cuts.append((self._clock(), seconds))
            self._forget()
            for one in seconds:
                self._all.add(max(0.0, one))  # the source's clock may be ahead

    def reached(self) -> Reached:
        """Return the freshness of the last minute."""
        with self._lock:
            self._forget()
            ordered = sorted(one for _, seconds in self._cuts for one in seconds)
        return Reached(
            transactions=len(ordered), p50=percentile(ordered, 0.5), p99=percentile(ordered, 0.99)
        )

    def as_json(self) -> Mapping[str, Any]:
        """Return the histogram of all transactions since the job began."""
        with self._lock:
            return self._all.as_json()

    def _forget(self) -> None:
        while self._cuts and self._clock() - self._cuts[0][0] > WINDOW_SECONDS:
            self._cuts.popleft()
