"""Measures how long a commit takes to become readable in the lake."""

import heapq
import threading
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(kw_only=True)
class FreshnessMeter:
    """Matches commits that the writers noted with the cuts that contain them.

    The LSN is read after the commit, so it is not before the commit's own. A cut that reaches it
    surely contains the commit, and the measured time is too long rather than too short.
    """

    seconds: list[float] = field(default_factory=list)  # freshness of the commits covered so far
    _waiting: list[tuple[int, float]] = field(default_factory=list)  # heap of LSN, commit time
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_commit(self, *, lsn: int, at: float) -> None:
        """Note a commit that was made ``at`` seconds since 1970, at or before ``lsn``."""
        with self._lock:
            heapq.heappush(self._waiting, (lsn, at))

    def add_cut(self, *, lsn: int, at: datetime) -> None:
        """Match a cut that reaches ``lsn``; call this in the order of the cuts."""
        with self._lock:
            while self._waiting and self._waiting[0][0] <= lsn:
                _, committed = heapq.heappop(self._waiting)
                self.seconds.append(max(0.0, at.timestamp() - committed))

    def oldest_waiting(self, now: float) -> float:
        """Return the age in seconds of the oldest commit that no cut covers yet, else 0."""
        with self._lock:
            return max((now - at for _, at in self._waiting), default=0.0)

    def uncovered_commits(self) -> list[tuple[int, float]]:
        """Return LSN and time of every commit that no cut covers yet."""
        with self._lock:
            return list(self._waiting)

    @property
    def uncovered_count(self) -> int:
        """Return the number of commits that no cut covers yet."""
        return len(self._waiting)
