"""Waiting for what comes by itself, and things that are due again after a time."""

import time
from collections.abc import Callable
from typing import TypeVar, overload

from tenacity import Retrying, retry_if_result, stop_after_delay, stop_never, wait_fixed

from cdc.errors import CdcError, ErrorKind

_Answer = TypeVar("_Answer")


@overload
def poll(
    ask: Callable[[], _Answer], enough: Callable[[_Answer], object], *, every: float
) -> _Answer: ...
@overload
def poll(
    ask: Callable[[], _Answer],
    enough: Callable[[_Answer], object],
    *,
    every: float,
    seconds: float,
) -> _Answer | None: ...
def poll(
    ask: Callable[[], _Answer],
    enough: Callable[[_Answer], object],
    *,
    every: float,
    seconds: float | None = None,
) -> _Answer | None:
    """Ask at once and every few seconds until the answer is enough, and return that answer.

    Return None when it is not enough after so many ``seconds``. Raises what ``ask`` raises.
    """
    attempts = Retrying(
        retry=retry_if_result(lambda answer: not enough(answer)),
        stop=stop_never if seconds is None else stop_after_delay(seconds),
        wait=wait_fixed(every),
        retry_error_callback=lambda _: None,
    )
    return attempts(ask)


def until(done: Callable[[], bool], seconds: float, message: str) -> None:
    """Ask until it is so. Raises TIMEOUT with the message."""
    if not poll(done, bool, every=0.1, seconds=seconds):
        raise CdcError(ErrorKind.TIMEOUT, f"{message} within {seconds:g} s")


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
