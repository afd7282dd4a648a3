"""Which landings hold notes of changed structures: so few of the log's files are opened for them.

Ranges of landings, ascending, both ends inside. A range may hold landings without a note, and no
landing with one is outside. Pure.
"""

from itertools import pairwise
from typing import Final

Ranges = tuple[tuple[int, int], ...]
MOST: Final = 64
"""So many ranges travel with every commit of the log, however often structures change."""


def with_landing(ranges: Ranges, landing: int) -> Ranges:
    """Take one more in, later than all; where they are too many, the nearest two become one."""
    found = [*ranges, (landing, landing)]
    while len(found) > MOST:
        gaps = [after[0] - before[1] for before, after in pairwise(found)]
        place = gaps.index(min(gaps))
        found[place : place + 2] = [(found[place][0], found[place + 1][1])]
    return tuple(found)
