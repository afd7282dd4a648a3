"""How long a start is waited for: as long as it goes on."""

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from cdc.stack.servers.server import Server

START_SECONDS = 180
"""A start that neither ends nor goes on for so long has failed. A slow machine is not an error."""

Clock = Callable[[], float]


@runtime_checkable
class Telling(Protocol):
    """A server that says how far its start is."""

    def progress(self) -> object:
        """Another value whenever it came further."""


class Patience:
    """Over once nothing was heard of a start for ``START_SECONDS``.

    A server that tells nothing has that long for the whole of its start. The job opens each table
    and may have to replay some, which takes as long as there are tables and events.
    """

    def __init__(self, server: Server, clock: Clock = time.monotonic) -> None:
        self._server, self._clock = server, clock
        self._heard, self._heard_at = self._progress(), clock()

    def is_over(self) -> bool:
        if (progress := self._progress()) != self._heard:
            self._heard, self._heard_at = progress, self._clock()
        return self._clock() - self._heard_at > START_SECONDS

    def _progress(self) -> object:
        return self._server.progress() if isinstance(self._server, Telling) else None
