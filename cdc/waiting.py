"""Wait for a condition, and run things at intervals."""

import time
from collections.abc import Callable

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc.errors import CdcError, ErrorKind


def until(done: Callable[[], bool], seconds: float, message: str) -> None:
    """Call ``done`` until it returns true; raise TIMEOUT with the message after ``seconds``."""
    attempts = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(0.1),
        retry=retry_if_result(lambda ok: not ok),
    )
    try:
        attempts(done)
    except RetryError:
        raise CdcError(ErrorKind.TIMEOUT, f"{message} within {seconds:g} s") from None


class Every:
    """A timer that is due at once and then at most once per interval."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock()

    def is_due(self) -> bool:
        """Return true if the interval has passed, and begin the next one."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
