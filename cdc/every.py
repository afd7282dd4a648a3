"""A thing that is due again after a time."""

import time
from collections.abc import Callable


class Every:
    """Due at once, and then once in so many seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock()

    def is_due(self) -> bool:
        """Whether it is; true once, until it is due again."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
