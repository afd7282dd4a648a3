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
    merged = [*ranges, (landing, landing)]
    while len(merged) > MOST:
        gaps = [after[0] - before[1] for before, after in pairwise(merged)]
        place = gaps.index(min(gaps))
        merged[place : place + 2] = [(merged[place][0], merged[place + 1][1])]
    return tuple(merged)
