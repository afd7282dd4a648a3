"""Hands landings from the landing thread to the applying thread."""

from dataclasses import dataclass, field, replace
from threading import Condition
from typing import Final

from cdc.land.landing import Landing

MOST_BYTES: Final = 128 << 20
"""Bytes of events that are kept in memory until a cut has them."""


@dataclass(slots=True, kw_only=True)
class Inbox:
    """Holds the landings that are not wholly inside a published cut yet; two threads share it.

    Events beyond ``most_bytes`` are given up, and will be read from the log. The oldest stay, as
    they are needed first, and so does the newest landing, which the rounds look at next.
    """

    condition: Condition = field(default_factory=Condition)
    landings: list[Landing] = field(default_factory=list)
    most_bytes: int = MOST_BYTES

    def add(self, landing: Landing) -> None:
        """Add a landing; called by the landing thread after its commit."""
        with self.condition:
            self.landings.append(landing)
            self._give_up()
            self.condition.notify_all()

    def _give_up(self) -> None:
        total = sum(map(_bytes, self.landings))
        for place in reversed(range(len(self.landings) - 1)):
            if total <= self.most_bytes:
                return
            total -= _bytes(self.landings[place])
            self.landings[place] = replace(self.landings[place], events=None)

    def waiting(self) -> list[Landing]:
        """Return a copy of the landings, in order."""
        with self.condition:
            return list(self.landings)

    def drop(self, upto: int) -> None:
        """Remove landings up to number ``upto``, which are wholly inside a published cut."""
        with self.condition:
            self.landings = [landing for landing in self.landings if landing.number > upto]

    def wait(self, newest: int, seconds: float) -> None:
        """Wait until there is a landing newer than ``newest``, for at most ``seconds``."""
        with self.condition:
            self.condition.wait_for(
                lambda: bool(self.landings) and self.landings[-1].number > newest, timeout=seconds
            )


def _bytes(landing: Landing) -> int:
    return 0 if landing.events is None else int(landing.events.nbytes)
