"""Ranges of landings that hold structure notes, so that few of the log's files are searched.

Ranges are ascending and include both ends. Every landing with a note is in one of them; a range
may also contain landings without a note. Pure.
"""

from itertools import pairwise
from typing import Final

Ranges = tuple[tuple[int, int], ...]
MOST: Final = 64
"""The most ranges that a commit of the log carries, however often structures change."""


def with_landing(ranges: Ranges, landing: int) -> Ranges:
    """Return the ranges with one more landing, which is later than all of them.

    If there are more than ``MOST`` then, the two nearest become one.
    """
    found = [*ranges, (landing, landing)]
    while len(found) > MOST:
        gaps = [after[0] - before[1] for before, after in pairwise(found)]
        place = gaps.index(min(gaps))
        found[place : place + 2] = [(found[place][0], found[place + 1][1])]
    return tuple(found)
