"""Asking one part again and again, in a thread of its own: it may not answer for ever."""

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from cdc.errors import CdcError

EVERY_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 12.0
"""Longer than a question and the pause before it, where the part answers."""

T = TypeVar("T")


class Probe(Generic[T]):
    """``ask`` is called until ``close``; a question that hangs is waited for by nobody."""

    def __init__(
        self,
        name: str,
        ask: Callable[[], T],
        *,
        every: float = EVERY_SECONDS,
        patience: float = _PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._ask = ask
        self._every = every
        self._patience = patience
        self._clock = clock
        self._closed = threading.Event()
        self._answer: tuple[T | None, str] = (None, "")
        self._answered_at = clock()
        threading.Thread(target=self._run, name=f"probe-{name}", daemon=True).start()

    def latest(self) -> tuple[T | None, str]:
        """The last answer, or what is known instead: nothing before the first one."""
        answer, at = self._answer, self._answered_at
        silent = self._clock() - at
        if silent <= self._patience:
            return answer
        return None, f"{self._name} has not answered for {silent:.0f} s"

    def close(self) -> None:
        """Ask no more; returns at once."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            answer = self._asked()
            self._answer, self._answered_at = answer, self._clock()
            self._closed.wait(self._every)

    def _asked(self) -> tuple[T | None, str]:
        try:
            return self._ask(), ""
        except CdcError as error:
            said = f"{error.message}; {error.detail}" if error.detail else error.message
            return None, said
        except Exception as error:  # noqa: BLE001 - a watcher must outlive what it looks at
            return None, f"{self._name} could not be asked: {type(error).__name__}"
