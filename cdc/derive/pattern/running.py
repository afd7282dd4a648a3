"""Keeps what a condition can see of the match so far: first and last rows, running aggregates.

The state is a tuple with one value per slot. Each row gives a new tuple, so that a machine that
goes back to an earlier row has the state of then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cdc.derive.pattern.values import Value, add, compare

Row = Sequence[Value | None]
State = tuple[Value | None, ...]


class Seen(StrEnum):
    """Says what a slot holds."""

    FIRST = "first"  # the position of the first row
    LAST = "last"  # the position of the last row
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Slot:
    """Names what is kept of the rows that a variable has so far, the current one included."""

    seen: Seen
    variable: str | None  # None for all rows of the match
    column: int | None = None  # of the rows; None for positions and for counting rows


_Update = Callable[[Value | None, int, Value | None], Value | None]


def _first(before: Value | None, at: int, _: Value | None) -> Value | None:
    return at if before is None else before


def _last(_before: Value | None, at: int, _: Value | None) -> Value | None:
    return at


def _count(before: Value | None, _at: int, value: Value | None) -> Value | None:
    return before if value is None else add(before or 0, 1)


def _sum(before: Value | None, _at: int, value: Value | None) -> Value | None:
    if before is None or value is None:
        return value if before is None else before
    return add(before, value)


def _min(before: Value | None, _at: int, value: Value | None) -> Value | None:
    if before is None or value is None:
        return value if before is None else before
    return value if compare(value, before) < 0 else before


def _max(before: Value | None, _at: int, value: Value | None) -> Value | None:
    if before is None or value is None:
        return value if before is None else before
    return value if compare(value, before) > 0 else before


_UPDATES: Final[dict[Seen, _Update]] = {
    Seen.FIRST: _first,
    Seen.LAST: _last,
    Seen.COUNT: _count,
    Seen.SUM: _sum,
    Seen.MIN: _min,
    Seen.MAX: _max,
}


class Running:
    """Calculates the slots of a pattern, row by row."""

    def __init__(self, slots: Sequence[Slot], variables: Sequence[str]) -> None:
        self.begin: State = tuple(0 if slot.seen is Seen.COUNT else None for slot in slots)
        self._of = {
            name: tuple(
                (i, _UPDATES[slot.seen], slot.column)
                for i, slot in enumerate(slots)
                if slot.variable in {None, name}
            )
            for name in variables
        }

    def after(self, state: State, variable: str, at: int, row: Row) -> State:
        """Return the state after the variable has taken the row at a position."""
        updates = self._of[variable]
        if not updates:
            return state
        values = list(state)
        for i, update, column in updates:
            values[i] = update(values[i], at, True if column is None else row[column])
        return tuple(values)
