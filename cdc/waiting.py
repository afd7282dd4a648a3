"""Wait for a condition, and run things at intervals or beside others."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar, overload

from tenacity import (
    Retrying,
    retry_if_exception,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    stop_never,
    wait_fixed,
)

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


def again_on_conflict(attempts: int) -> Retrying:
    """Return what calls a function again while it raises CONFLICT, so many times in all."""
    return Retrying(
        stop=stop_after_attempt(attempts), retry=retry_if_exception(_is_conflict), reraise=True
    )


def _is_conflict(error: BaseException) -> bool:
    return isinstance(error, CdcError) and error.kind is ErrorKind.CONFLICT


def until(done: Callable[[], bool], seconds: float, message: str) -> None:
    """Call ``done`` until it returns true; raise TIMEOUT with the message after ``seconds``."""
    if not poll(done, bool, every=0.1, seconds=seconds):
        raise CdcError(ErrorKind.TIMEOUT, f"{message} within {seconds:g} s")


class Every:
    """Times something that is due at once, and then at most once per interval."""

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


@contextmanager
def beside(work: Callable[[Event], None], name: str) -> Iterator[None]:
    """Do the work in a thread of this name for the length of the block.

    It is given an event that is set when the block ends, and is waited for.
    """
    over = Event()
    thread = Thread(target=work, args=(over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
