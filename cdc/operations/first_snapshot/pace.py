"""Limits how fast rows are read, over all readers together."""

import threading
import time
from collections.abc import Callable


class Pace:
    """Makes callers wait so that they take at most so many rows a second; 0 is no limit.

    ``clock`` and the waits are in seconds. Any thread may use it.
    """

    def __init__(self, rows_per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rows_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock()

    def take(self, rows: int) -> float:
        """Take so many rows, and return how long to wait before the next."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._clock()
            self._free_at = max(self._free_at, now) + rows / self._rate
            return self._free_at - now
