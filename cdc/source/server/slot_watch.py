"""That nobody moves the slot on but the connector: what lies between is in no log.

The connector stores a place before it confirms it to the slot, so a slot that is ahead of it was
moved by somebody else. The connector does not see that: it goes on from the slot, and seconds later
has stored a place that is further still. So this looks twice a second, in a thread of its own.
While the connector reads the slot nobody else can move it, and its worker is not asked.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from cdc.errors import CdcError, ErrorKind
from cdc.observe.causes import DEBEZIUM
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect_to_ask
from cdc.source.server.slot import SlotState

_EVERY_SECONDS: Final = 0.5
_SOON_SECONDS: Final = 1.5
"""In which no session of the connector begins, confirms something and ends."""
_CERTAIN_SECONDS: Final = 5.0
"""Shorter than the connector waits before it reads again what was taken from it."""
logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Followed:
    """What is known of the connector; ``ask`` tells the furthest place that it has stored, or 0."""

    name: str
    ask: Callable[[], int]
    clock: Callable[[], float] = time.monotonic
    stored: int = 0
    session: int | None = None
    """The connector's that was looked at: all that it confirms is its own."""
    unread: int | None = None
    """Where the slot was at the last look, if the connector did not read it."""
    looked: float = 0.0
    moved: bool = False
    since: float | None = None

    def look(self, state: SlotState) -> None:
        """Raises CHAIN_BROKEN where the slot is ahead.

        The connector is asked after the slot was: what it has confirmed by then, it had stored.
        """
        session = state.active_pid if state.application.startswith(DEBEZIUM) else None
        if session is not None and session == self.session:
            return
        confirmed = state.confirmed_lsn or 0
        self.moved |= session is None and self._has_moved(confirmed)
        self.unread, self.looked = confirmed if session is None else None, self.clock()
        asked = self.ask() if confirmed > self.stored else self.stored
        self.stored = max(self.stored, asked)
        if confirmed <= self.stored:
            self.session, self.moved, self.since = session, False, None
        elif asked and self._is_certain():
            slot.refuse_ahead(self.name, state, self.stored)

    def _has_moved(self, confirmed: int) -> bool:
        """Unless the connector may have had a session since the last look."""
        soon = self.clock() - self.looked <= _SOON_SECONDS
        return soon and self.unread not in {None, confirmed}

    def _is_certain(self) -> bool:
        """It was seen to move while the connector did not read it, or has been ahead for long.

        What the connector stored last may be told a moment after it was: a commit takes its time.
        """
        if self.since is None:
            self.since = self.clock()
        return self.moved or self.clock() - self.since >= _CERTAIN_SECONDS


class SlotWatch:
    """The thread, with a connection that is made anew where it was lost."""

    def __init__(self, url: str, name: str, ask: Callable[[], int]) -> None:
        self._url = url
        self._followed = Followed(name, ask)
        self._connection: Connection | None = None
        self._refused: CdcError | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def refuse(self) -> None:
        """Raise what was seen, if anything was; the first call begins to look."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="slot", daemon=True)
            self._thread.start()
        if self._refused is not None:
            raise self._refused

    def close(self) -> None:
        """Look no more; returns at once."""
        self._closed.set()

    def _run(self) -> None:
        while self._refused is None and not self._closed.is_set():
            try:
                self._look()
            except CdcError as error:
                self._refused = error if error.kind is ErrorKind.CHAIN_BROKEN else None
                self._disconnect()
            except Exception as error:  # noqa: BLE001 - it has to look as long as the job runs
                logger.warning("the slot was not looked at", error=type(error).__name__)
                self._disconnect()
            self._closed.wait(_EVERY_SECONDS)
        self._disconnect()

    def _look(self) -> None:
        if self._connection is None:
            self._connection = connect_to_ask(self._url)
        state = slot.slot_state(self._connection, self._followed.name)
        if state is not None:
            self._followed.look(state)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
