"""The order in which ways are measured: alternating, so that no one has the quiet minutes."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

_Way = TypeVar("_Way")


def alternate(ways: Sequence[_Way], repetitions: int, seed: int) -> Iterator[tuple[int, _Way]]:
    """Yield every way once per repetition, each repetition in an order of its own."""
    random = Random(seed)  # noqa: S311 - an order, no secret
    for repetition in range(repetitions):
        order = list(ways)
        random.shuffle(order)
        for way in order:
            yield repetition, way
