"""How long a commit takes to become readable in the lake, seen by the one who committed."""

import heapq
import threading
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(kw_only=True)
class Freshness:
    """Commits noted by writers, matched with the cuts that cover them.

    The LSN noted is read after the commit, so it lies at or behind the commit's own: a cut that
    reaches it holds the commit for certain, and the time measured errs on the long side.
    """

    seconds: list[float] = field(default_factory=list)  # of the commits covered so far
    _waiting: list[tuple[int, float]] = field(default_factory=list)  # heap of LSN, commit time
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def committed(self, *, lsn: int, at: float) -> None:
        with self._lock:
            heapq.heappush(self._waiting, (lsn, at))

    def published(self, *, lsn: int, at: datetime) -> None:
        """A cut that reaches ``lsn`` became readable; call it in the order of the cuts."""
        with self._lock:
            while self._waiting and self._waiting[0][0] <= lsn:
                _, committed = heapq.heappop(self._waiting)
                self.seconds.append(max(0.0, at.timestamp() - committed))

    def oldest_waiting(self, now: float) -> float:
        """Age of the oldest commit noted and not yet covered; 0 when all are."""
        with self._lock:
            return max((now - at for _, at in self._waiting), default=0.0)

    def noted(self) -> list[tuple[int, float]]:
        """LSN and time of every commit that is not covered."""
        with self._lock:
            return list(self._waiting)

    @property
    def waiting(self) -> int:
        return len(self._waiting)
