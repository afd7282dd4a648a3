"""Asks one server repeatedly in a thread of its own, since it may never answer."""

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from cdc.errors import CdcError

EVERY_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 12.0
"""Longer than a pause and a question together take when the server answers."""

T = TypeVar("T")


class Probe(Generic[T]):
    """Calls ``ask`` repeatedly until ``close``; nobody waits for a question that hangs."""

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
        """Return the last answer, or None and why there is none; (None, "") before the first.

        An answer counts as missing after ``patience`` seconds without another one.
        """
        answer, at = self._answer, self._answered_at
        silent = self._clock() - at
        if silent <= self._patience:
            return answer
        return None, f"{self._name} has not answered for {silent:.0f} s"

    def close(self) -> None:
        """Stop asking; return at once, without waiting for the thread."""
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
            return None, f"{error.message}; {error.detail}" if error.detail else error.message
        except Exception as error:  # noqa: BLE001 - the probe must outlive any failure of the server
            return None, f"{self._name} could not be asked: {type(error).__name__}"
