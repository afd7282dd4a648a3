"""Decides how long to wait for a start: as long as it makes progress."""

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from cdc.stack.servers.server import Server

START_SECONDS = 180
"""A start that makes no progress for so long has failed; a slow machine is no error."""

Clock = Callable[[], float]


@runtime_checkable
class ReportsProgress(Protocol):
    """Reports how far a server's start has come."""

    def progress(self) -> object:
        """Return a value that changes whenever the start has come further."""


class Patience:
    """Is over once a start has made no progress for ``START_SECONDS``.

    A server that reports no progress has that long for its whole start. The job reports progress:
    it opens every table and may replay some, which takes time for each table and event.
    """

    def __init__(self, server: Server, clock: Clock = time.monotonic) -> None:
        self._server, self._clock = server, clock
        self._last, self._last_at = self._progress(), clock()

    def is_over(self) -> bool:
        """Return whether the start has stalled for longer than ``START_SECONDS``."""
        if (progress := self._progress()) != self._last:
            self._last, self._last_at = progress, self._clock()
        return self._clock() - self._last_at > START_SECONDS

    def _progress(self) -> object:
        return self._server.progress() if isinstance(self._server, ReportsProgress) else None
