"""Taking single tables out of the rounds, between two of them, and giving them back.

Rounds are one thread, and a table is used by one thread at a time. Who reads a table again has it
for itself while it is frozen: from the moment at which a cut is published until it is thawed.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from cdc.apply.table.applied_table import AppliedTable

_LOOK_SECONDS: Final = 0.5


class Freezer:
    """``published`` and ``between_rounds`` are called by the thread of the rounds alone."""

    def __init__(self, tables: Mapping[str, AppliedTable]) -> None:
        self._tables = tables
        self._changed = threading.Condition()
        self._at: dict[str, frozenset[str]] = {}  # topics, by the request of the cut
        self._next: set[str] = set()
        self._thawed: set[str] = set()
        self._acts: list[Callable[[], None]] = []

    def freeze_at(self, request: str, topics: Collection[str]) -> None:
        """Freeze tables in the moment in which the cut of this request is published."""
        with self._changed:
            self._at[request] = frozenset(topics)

    def freeze(self, topic: str) -> None:
        """Freeze a table before the next round; ``is_frozen`` tells when."""
        with self._changed:
            self._next.add(topic)

    def forget(self, request: str) -> None:
        """The cut of this request is waited for no more."""
        with self._changed:
            self._at.pop(request, None)

    def is_frozen(self, topic: str, seconds: float = _LOOK_SECONDS) -> bool:
        """Wait up to so many seconds for it."""
        with self._changed:
            return self._changed.wait_for(lambda: self._tables[topic].frozen, seconds)

    def thaw(self, topic: str) -> None:
        """Give the table back; the rounds take it in before the next one."""
        with self._changed:
            self._next.discard(topic)
            self._thawed.add(topic)

    def between(self, act: Callable[[], None]) -> None:
        """Do something to the tables before the next round."""
        with self._changed:
            self._acts.append(act)

    def published(self, request: str | None) -> None:
        """A cut was published, for this request if for any."""
        with self._changed:
            self._freeze(self._at.pop(request, frozenset()) if request else frozenset())

    def between_rounds(self) -> list[str]:
        """Freeze what is to be frozen; the topics of thawed tables, which may follow again."""
        with self._changed:
            for act in self._acts:
                act()
            self._acts = []
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
