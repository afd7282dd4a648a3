"""Find the matches of a pattern in the rows of one partition.

The machine tries alternatives in the order in which SQL prefers them, and takes the first way
through the pattern; where a way ends, it goes back. Its memory grows with the rows of a partition.

If no condition looks at the match so far, an instruction that led to nothing at a row is not tried
there again: one search takes at most as many steps as there are rows times instructions. Other
conditions can need exponentially many. So there is a budget of steps, over which the table stops.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cdc.derive.pattern.program import Done, Jump, Program, Split, Take
from cdc.derive.pattern.running import Row, Running, State
from cdc.errors import CdcError, ErrorKind

Condition = Callable[[Sequence[Row], int, State], bool | None]
"""Of the rows, the position of the current one and the state with it; NULL is not fulfilled."""
STEPS: Final = 1_000_000
STEPS_PER_ROW: Final = 1_000


class Skip(StrEnum):
    """Says where to look for the next match after one is found."""

    PAST_LAST_ROW = "past last row"
    TO_NEXT_ROW = "to next row"
    TO_FIRST = "to first"
    TO_LAST = "to last"


@dataclass(frozen=True, slots=True)
class Match:
    """Holds the position of a match's first row, and the variable of each of its rows, in order."""

    first: int
    variables: tuple[str, ...]


class Budget:
    """Counts the steps that a table may still take: STEPS, and STEPS_PER_ROW of its rows so far."""

    def __init__(self) -> None:
        self.left = STEPS

    def add(self, rows: int) -> None:
        """Allow the steps of more rows."""
        self.left += rows * STEPS_PER_ROW

    def take(self) -> None:
        """Count one step; raises TABLE_STOPPED where none is left."""
        self.left -= 1
        if self.left < 0:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"its pattern needs more than {STEPS_PER_ROW:,} steps per row",
                remedy="narrow within or the conditions, or repeat fewer variables that are alike",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """Finds the matches of a compiled pattern; it has no state between partitions."""

    program: Program
    conditions: Mapping[str, Condition]  # a variable without one takes every row
    running: Running
    remembers: bool  # whether a condition looks at the match so far
    skip: Skip = Skip.PAST_LAST_ROW
    target: str = ""  # the variable to skip to
    begins: Callable[[Row], bool] = lambda _: True  # whether a row may be the first of a match
    within: int | None = None  # how long a match lasts at most, from its first row to its last

    def matches(
        self, rows: Sequence[Row], times: Sequence[int] | None, budget: Budget
    ) -> Iterator[Match]:
        """Yield the matches in rows that are in order.

        ``times`` of the rows are in the unit of ``within``, and are needed with it. Raises
        TABLE_STOPPED for too many steps, and where no row or the first one is the one to skip to.
        """
        budget.add(len(rows))
        search = _Search(self, rows, budget)
        at = 0
        while at < len(rows):
            if not self.begins(rows[at]):
                at += 1
                continue
            end = len(rows)
            if self.within is not None and times is not None:
                end = bisect_right(times, times[at] + self.within, at)
            found = search.at(at, end)
            if found is None:
                at += 1
                continue
            yield Match(at, found)
            at += self._onward(found)

    def _onward(self, variables: tuple[str, ...]) -> int:
        """Return how many rows after the first row of a match to look for the next."""
        match self.skip:
            case Skip.PAST_LAST_ROW:
                return len(variables)
            case Skip.TO_NEXT_ROW:
                return 1
        named = [i for i, name in enumerate(variables) if name == self.target]
        onward = (named[0] if self.skip is Skip.TO_FIRST else named[-1]) if named else 0
        if onward:
            return onward
        what = "is the first row of one" if named else "has no row in one"
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"after a match it skips to {self.target}, which {what}",
            remedy="skip past the last row, or to a variable that every match has after its first",
        )


_Path = tuple["_Path", str] | None


class _Search:
    """Searches one partition, and remembers what led to nothing."""

    def __init__(self, matcher: Matcher, rows: Sequence[Row], budget: Budget) -> None:
        self._of, self._rows, self._budget = matcher, rows, budget
        size = 0 if matcher.remembers else len(matcher.program) * (len(rows) + 1)
        self._tried = array("I", bytes(size * array("I").itemsize))
        self._round = 0

    def at(self, start: int, end: int) -> tuple[str, ...] | None:
        """Return the variables of the preferred match that begins at a row and ends before another.

        What was tried is known for the same end, and until a match is found: what is on its way has
        not led to nothing.
        """
        if self._of.within is not None or self._round == 0:
            self._round += 1
        found = self._run(start, end)
        if found is not None:
            self._round += 1
        return found

    def _run(self, start: int, end: int) -> tuple[str, ...] | None:
        todo: list[tuple[int, int, State, _Path]] = [(0, start, self._of.running.begin, None)]
        while todo:
            pc, at, state, path = todo.pop()
            if self._known(pc, at):
                continue
            self._budget.take()
            match self._of.program[pc]:
                case Take(variable) if at < end:
                    if (after := self._taken(variable, at, state)) is not None:
                        todo.append((pc + 1, at + 1, after, (path, variable)))
                case Split(first, second):
                    todo += (second, at, state, path), (first, at, state, path)
                case Jump(to):
                    todo.append((to, at, state, path))
                case Done():
                    return _unwound(path)
        return None

    def _known(self, pc: int, at: int) -> bool:
        """Return whether an instruction was tried at a row before; from now on it was."""
        if self._of.remembers:
            return False
        place = pc * (len(self._rows) + 1) + at
        if self._tried[place] == self._round:
            return True
        self._tried[place] = self._round
        return False

    def _taken(self, variable: str, at: int, state: State) -> State | None:
        """Return the state after the variable took the row; None if it does not."""
        after = self._of.running.after(state, variable, at, self._rows[at])
        condition = self._of.conditions.get(variable)
        return after if condition is None or condition(self._rows, at, after) else None


def _unwound(path: _Path) -> tuple[str, ...]:
    names = []
    while path is not None:
        path, name = path
        names.append(name)
    return tuple(reversed(names))
