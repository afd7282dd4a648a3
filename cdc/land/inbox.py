"""Hands landings from the landing thread to the applying thread."""

from dataclasses import dataclass, field
from threading import Condition

from cdc.land.landing import Landing


@dataclass(slots=True, kw_only=True)
class Inbox:
    """Landings that are not wholly inside a published cut yet; shared by two threads."""

    condition: Condition = field(default_factory=Condition)
    landings: list[Landing] = field(default_factory=list)

    def add(self, landing: Landing) -> None:
        """Add a landing; called by the landing thread after its commit."""
        with self.condition:
            self.landings.append(landing)
            self.condition.notify_all()

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
