"""Tells by what steps have cost whether a whole query is cheaper than a step by the scope key.

A step by the scope key follows the changes, and a whole query the inputs: while these are small,
reading them all again can be the smaller work. Both give the same rows.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

_WORTH: Final = 0.8
"""A whole query has to cost less than this part of a step."""
_SHORT: Final = 0.1
"""Seconds; a step that takes less is left as it is."""
_LONG: Final = 1.0
"""Seconds; a whole query that may take more is not tried: its cost would only grow."""
_GROWTH: Final = 4
"""Inputs that have grown by more say nothing of what they cost now."""
_AGAIN: Final = 16
"""After so many whole queries a step by the scope key is measured again."""


_BEFORE: Final = 2
"""Steps by the scope key until one is measured: the first has to get the inputs into memory."""


@dataclass(slots=True)
class Measured:
    """Keeps the costs of one table's steps; used by one thread."""

    _whole: tuple[float, int] | None = None  # seconds, and the rows of the inputs
    _scoped: deque[float] = field(default_factory=lambda: deque(maxlen=3))  # seconds
    _left: int = _BEFORE  # steps by the scope key until the next that is measured
    _in_turn: int = 0  # whole queries, since one was

    def took_whole(self, seconds: float, rows: int) -> None:
        """Take what the whole query has cost, with so many rows in its inputs."""
        self._whole, self._in_turn = (seconds, rows), self._in_turn + 1
        if self._in_turn >= _AGAIN:
            self._left = _BEFORE

    def took_scoped(self, seconds: float) -> None:
        """Take what a step by the scope key has cost."""
        self._left = max(0, self._left - 1)
        if not self._left:
            self._scoped.append(seconds)
            self._in_turn = 0

    @property
    def may_prefer_whole(self) -> bool:
        """Return whether the whole query was the cheaper one, before its inputs grew."""
        if self._whole is None or self._left or min(self._scoped) < _SHORT:
            return False
        return self._whole[0] <= self._most

    def prefers_whole(self, rows: int) -> bool:
        """Return whether the whole query is the cheaper one for so many rows of the inputs."""
        if self._whole is None or not self.may_prefer_whole:
            return False
        seconds, before = self._whole
        grown = max(1.0, rows / max(1, before))
        return grown <= _GROWTH and seconds * grown <= self._most

    @property
    def _most(self) -> float:
        return min(_LONG, _WORTH * min(self._scoped))
