"""Write the state of a watermark into the mark of a commit, and read it from there."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class LateState:
    """Holds a watermark, and the place in the log up to which it has seen everything.

    ``begun`` is the place behind which the first event is that it has seen.
    """

    seen: Watermark
    place: Mapping[str, Any]
    begun: Mapping[str, int]
    admitted: int = 0
    """The newest cut from which on rows count that were admitted; 0 if none are."""

    def facts(self, rule: LateRule) -> dict[str, Any]:
        """Return it for a mark, with the watermark's time for those who have no rule."""
        return {**asdict(self), "watermark": self.seen.time(rule)}


def state_of(facts: Mapping[str, Any]) -> LateState | None:
    """Return the state that a mark has; None if it has none."""
    late = facts.get("late")
    if not late:
        return None
    names = [field.name for field in fields(Watermark)]
    seen = Watermark(**{name: late["seen"][name] for name in names})
    admitted = late.get("admitted", 0)
    return LateState(seen=seen, place=late["place"], begun=late["begun"], admitted=admitted)
