"""A part of the matrix in so many minutes: other cases with another seed, some of every file.

Each file has an equal share of what is left when it begins, and its cases are in an order of the
seed; a case that has begun is let end. What is beyond is skipped, and says so.
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
    """Of seconds by ``clock``, from the first case on."""

    seconds: float
    files: list[str]
    """In the order in which they come; none comes twice."""
    clock: Callable[[], float]
    _end: float | None = None
    _share: float = 0.0
    _begun: set[str] = field(default_factory=set)

    def has_room(self, file: str) -> bool:
        """Whether a case of the file may begin now; the first of a file may until the very end."""
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
    """The files, and the cases of each test, at random; a file's tests stay in their order."""
    chance = random.Random(seed)
    files = [list(found) for _, found in groupby(items, lambda item: case(item)[0])]
    chance.shuffle(files)
    return [item for file in files for item in _mixed(file, case, chance)]


def _mixed(items: Iterable[T], case: Callable[[T], Case], chance: random.Random) -> list[T]:
    tests = [list(found) for _, found in groupby(items, case)]
    for cases in tests:
        chance.shuffle(cases)
    return [item for cases in tests for item in cases]
