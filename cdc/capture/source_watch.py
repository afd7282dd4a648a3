"""The source, looked at while the job runs: that it is still the one that the lake follows."""

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

_AGAIN_SECONDS: Final = 5.0
logger = structlog.get_logger(__name__)


class SourceWatch:
    """One connection, made anew where it was lost; used by one thread.

    A source that does not answer is passed over: what has landed came from it before. With the
    next look that it answers, it has to be the same again.
    """

    def __init__(self, url: str, name: str, known: Origin, stored: Callable[[], int]) -> None:
        """``name`` is the slot's; ``known`` is what the lake follows, as far as it says.

        ``stored`` asks for the furthest place that the connector has stored; 0: it is not known.
        """
        self._url = url
        self._name = name
        self._known = known
        self._slot = SlotWatch(url, name, stored)
        self._connection: Connection | None = None
        self._next = 0.0

    def look(self, reached: int) -> None:
        """Raises CHAIN_BROKEN where it is another source, another state of it, or without slot.

        So it does where the slot has left the connector behind: somebody else moved it on.
        ``reached`` is the LSN up to which changes came from it.
        """
        self._slot.refuse()
        if self._connection is None and time.monotonic() < self._next:
            return
        try:
            self._look(reached)
        except CdcError as error:
            if error.kind is ErrorKind.CHAIN_BROKEN:
                raise
            # Starting up and shutting down are refusals too; both pass.
            logger.warning("the source was not asked", error=error.message)
            self._disconnect()
            self._next = time.monotonic() + _AGAIN_SECONDS

    def position(self) -> int | None:
        """Where the source's WAL ends now; None where it does not answer."""
        try:
            return None if self._connection is None else current_lsn(self._connection)
        except CdcError:
            self._disconnect()
            return None

    def close(self) -> None:
        """Look no more."""
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
