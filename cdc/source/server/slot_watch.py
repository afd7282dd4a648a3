"""Detect that a client other than the connector advanced the slot, which loses changes.

The connector stores a position before confirming it to the slot, so a slot that is ahead of it was
moved by another client. The connector does not notice: it continues from the slot, and seconds
later has stored a position that is further still. So a thread checks the slot twice a second.
While the connector reads the slot nobody else can move it, and its worker need not be queried.
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
"""Too short for the connector to open a session, confirm a position and close it again."""
_CERTAIN_SECONDS: Final = 5.0
"""Shorter than the connector's delay before it reconnects to a slot taken from it."""
logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class WatchedSlot:
    """Compares the slot with its connector; ``ask`` returns the LSN that it stored, or 0."""

    name: str
    ask: Callable[[], int]
    clock: Callable[[], float] = time.monotonic
    stored: int = 0
    session: int | None = None
    """Pid of the connector's last checked session: only it can move the slot while it lasts."""
    unread: int | None = None
    """The slot's position at the last look, if the connector was not reading it."""
    looked: float = 0.0
    moved: bool = False
    since: float | None = None

    def look(self, state: SlotState) -> None:
        """Raise CHAIN_BROKEN if the slot is certainly ahead of the connector.

        The connector is queried after the slot: what it had confirmed, it has stored by then.
        """
        session = state.active_pid if state.application.startswith(DEBEZIUM) else None
        if session is not None and session == self.session:
            return
        confirmed = state.confirmed_lsn or 0
        self.moved |= session is None and self._has_moved(confirmed)
        self.unread, self.looked = confirmed if session is None else None, self.clock()
        answer = self.ask() if confirmed > self.stored else self.stored
        self.stored = max(self.stored, answer)
        if confirmed <= self.stored:
            self.session, self.moved, self.since = session, False, None
        elif answer and self._is_certain():
            slot.refuse_ahead(self.name, state, self.stored)

    def _has_moved(self, confirmed: int) -> bool:
        """Return whether the slot moved since a last look too recent for a session in between."""
        soon = self.clock() - self.looked <= _SOON_SECONDS
        return soon and self.unread not in {None, confirmed}

    def _is_certain(self) -> bool:
        """Return whether the slot moved while the connector was away, or stayed ahead for long.

        The worker may report a stored position a moment late, because its commit takes time.
        """
        if self.since is None:
            self.since = self.clock()
        return self.moved or self.clock() - self.since >= _CERTAIN_SECONDS


class SlotWatch:
    """Watches the slot in a thread, over its own connection, which it reopens after a loss."""

    def __init__(self, url: str, name: str, ask: Callable[[], int]) -> None:
        self._url = url
        self._followed = WatchedSlot(name, ask)
        self._connection: Connection | None = None
        self._refused: CdcError | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def refuse(self) -> None:
        """Raise CHAIN_BROKEN if another client moved the slot; the first call starts the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="slot", daemon=True)
            self._thread.start()
        if self._refused is not None:
            raise self._refused

    def close(self) -> None:
        """Tell the thread to end, without waiting for it."""
        self._closed.set()

    def _run(self) -> None:
        while self._refused is None and not self._closed.is_set():
            try:
                self._look()
            except CdcError as error:
                self._refused = error if error.kind is ErrorKind.CHAIN_BROKEN else None
                self._disconnect()
            except Exception as error:  # noqa: BLE001 - it must watch as long as the job runs
                logger.warning("the slot could not be checked", error=type(error).__name__)
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
