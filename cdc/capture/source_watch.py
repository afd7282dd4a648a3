"""Checks while the job runs that the source is still the one that the lake follows."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from cdc.errors import CdcError, ErrorKind
from cdc.source.server import slot
from cdc.source.server.barrier import current_lsn
from cdc.source.server.connection import Connection, connect_to_ask
from cdc.source.server.origin import Origin, origin, refuse_other
from cdc.source.server.slot_watch import SlotWatch
from cdc.waiting import Every

_AGAIN_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 5.0
"""How often the source is asked while no cut is due."""
logger = structlog.get_logger(__name__)


class SourceWatch:
    """Watches the source through one connection, which is reopened if lost; used by one thread.

    A source that does not answer is tolerated: what has landed came from it before. At the next
    check that it answers, it has to be the same source again.
    """

    def __init__(self, url: str, name: str, known: Origin, stored: Callable[[], int]) -> None:
        """Watch the source at ``url`` with slot ``name``.

        ``known`` is the source that the lake follows, where recorded. ``stored`` returns the
        highest LSN that the connector has stored; 0 if unknown.
        """
        self._url = url
        self._name = name
        self._known = known
        self._slot = SlotWatch(url, name, stored)
        self._connection: Connection | None = None
        self._next = 0.0
        self._idle = Every(IDLE_SECONDS)

    def look_now_and_then(self, reached: int) -> None:
        """Check like ``look``, but ask the source only every ``IDLE_SECONDS``.

        A slot that was moved is refused at once: a thread watches it.
        """
        self._slot.refuse()
        if self._idle.is_due():
            self.look(reached)

    def look(self, reached: int) -> None:
        """Check the source; ``reached`` is the LSN up to which its changes have arrived.

        Raises CHAIN_BROKEN if it is another source, was restored to an older state, has no slot, or
        if someone moved the slot ahead of the connector.
        """
        self._slot.refuse()
        if self._connection is None and time.monotonic() < self._next:
            return
        try:
            self._look(reached)
        except CdcError as error:
            if error.kind is ErrorKind.CHAIN_BROKEN:
                raise
            # A source that is starting up or shutting down refuses as well; both are temporary.
            logger.warning("the source could not be checked", error=error.message)
            self._disconnect()
            self._next = time.monotonic() + _AGAIN_SECONDS

    def position(self) -> int | None:
        """Return the end of the source's WAL; None if the source does not answer."""
        try:
            return None if self._connection is None else current_lsn(self._connection)
        except CdcError:
            self._disconnect()
            return None

    def close(self) -> None:
        """Close the connections; no check follows."""
        self._slot.close()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _look(self, reached: int) -> None:
        if self._connection is None:
            self._connection = connect_to_ask(self._url)
        now = origin(self._connection)
        refuse_other(self._known, now, reached)
        slot.readable(self._name, slot.slot_state(self._connection, self._name))
