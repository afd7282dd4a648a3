"""What the landing thread hands to the applying one."""

from dataclasses import dataclass, field
from threading import Condition

from cdc.land.landing import Landing


@dataclass(slots=True, kw_only=True)
class Inbox:
    """Landings that are not wholly inside a cut yet."""

    condition: Condition = field(default_factory=Condition)
    landings: list[Landing] = field(default_factory=list)

    def add(self, landing: Landing) -> None:
        """Called by the landing thread after its commit."""
        with self.condition:
            self.landings.append(landing)
            self.condition.notify_all()

    def waiting(self) -> list[Landing]:
        with self.condition:
            return list(self.landings)

    def drop(self, upto: int) -> None:
        """Forget landings up to a number; they are wholly inside a published cut."""
        with self.condition:
            self.landings = [landing for landing in self.landings if landing.number > upto]

    def wait(self, newest: int, seconds: float) -> None:
        """Return when something newer than landing ``newest`` is there, or after the time."""
        with self.condition:
            self.condition.wait_for(
                lambda: bool(self.landings) and self.landings[-1].number > newest, timeout=seconds
            )
