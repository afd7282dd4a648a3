"""Run part of the test matrix in a number of minutes: some cases of every file, chosen by the seed.

Each file gets an equal share of the time left when it begins, and the seed orders its cases; a case
that has begun may finish. Cases beyond the budget are skipped with a message.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

T = TypeVar("T")
Case = tuple[str, str]
"""The file and the test in it, without its parameter."""


@dataclass(slots=True)
class Budget:
    """Shares out a budget of seconds by ``clock``, counted from the first case."""

    seconds: float
    files: list[str]
    """The files in their order, without duplicates."""
    clock: Callable[[], float]
    _end: float | None = None
    _share: float = 0.0
    _begun: set[str] = field(default_factory=set)

    def has_room(self, file: str) -> bool:
        """Return whether a case of the file may begin; a file's first may until the budget ends."""
        now = self.clock()
        if self._end is None:
            self._end = now + self.seconds
        if file not in self._begun:
            left = self.files[self.files.index(file) :]
            self._share = now + (self._end - now) / len(left)
            self._begun.add(file)
            return now < self._end
        return now < self._share


def shuffled(items: Sequence[T], case: Callable[[T], Case], seed: int) -> list[T]:
    """Shuffle the files, and the cases of each test; the tests of a file keep their order."""
    chance = random.Random(seed)
    files = [list(group) for _, group in groupby(items, lambda item: case(item)[0])]
    chance.shuffle(files)
    return [item for file in files for item in _mixed(file, case, chance)]


def _mixed(items: Iterable[T], case: Callable[[T], Case], chance: random.Random) -> list[T]:
    tests = [list(group) for _, group in groupby(items, case)]
    for cases in tests:
        chance.shuffle(cases)
    return [item for cases in tests for item in cases]
