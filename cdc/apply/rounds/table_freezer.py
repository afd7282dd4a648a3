"""Takes single tables out of the rounds between two of them, and gives them back.

Rounds are one thread, and only one thread may use a table at a time. An operation that reads a
table again has it for itself while the table is frozen: from the publication of a cut until thaw.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from cdc.apply.table.applied_table import AppliedTable

_LOOK_SECONDS: Final = 0.5


class TableFreezer:
    """Freezes and thaws tables.

    Only the thread of the rounds calls ``freeze_waiting`` and ``between_rounds``; any thread may
    call the other methods.
    """

    def __init__(self, tables: Mapping[str, AppliedTable]) -> None:
        self._tables = tables
        self._changed = threading.Condition()
        self._at: dict[str, frozenset[str]] = {}  # topics, by the request of the cut
        self._next: set[str] = set()
        self._thawed: set[str] = set()
        self._actions: list[Callable[[], None]] = []

    def freeze_at(self, request: str, topics: Collection[str]) -> None:
        """Freeze tables as soon as the cut of this request is published."""
        with self._changed:
            self._at[request] = frozenset(topics)

    def freeze(self, topic: str) -> None:
        """Freeze a table before the next round; ``is_frozen`` waits for it."""
        with self._changed:
            self._next.add(topic)

    def forget(self, request: str) -> None:
        """Drop the tables of ``freeze_at``: nobody waits for the cut of this request any more."""
        with self._changed:
            self._at.pop(request, None)

    def is_frozen(self, topic: str, seconds: float = _LOOK_SECONDS) -> bool:
        """Wait up to ``seconds`` for the table to be frozen, and return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._tables[topic].frozen, seconds)

    def thaw(self, topic: str) -> None:
        """Give the table back; the rounds have it again from the next one on."""
        with self._changed:
            self._next.discard(topic)
            self._thawed.add(topic)

    def between(self, action: Callable[[], None]) -> None:
        """Call ``action`` before the next round, in the thread of the rounds."""
        with self._changed:
            self._actions.append(action)

    def freeze_waiting(self, request: str | None) -> None:
        """Freeze the tables that waited for this cut; ``request`` is the one it serves, if any."""
        with self._changed:
            self._freeze(self._at.pop(request, frozenset()) if request else frozenset())

    def between_rounds(self) -> list[str]:
        """Run the waiting actions, freeze and thaw tables.

        Returns the topics of the thawed tables, which may follow again.
        """
        with self._changed:
            for action in self._actions:
                action()
            self._actions = []
            self._freeze(self._next)
            self._next = set()
            thawed, self._thawed = sorted(self._thawed), set()
            for topic in thawed:
                self._tables[topic].thaw()
            return thawed

    def _freeze(self, topics: Collection[str]) -> None:
        for topic in topics:
            self._tables[topic].freeze()
        self._changed.notify_all()
