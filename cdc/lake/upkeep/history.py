"""Decides how long a table keeps its old versions. Pure.

What is kept costs in proportion to the number of versions: each has an entry in the log, its files,
and a mention of every file that it removed in each checkpoint. A table that is written to once a
minute can keep a week of them, one that is written to every second cannot.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

LEAST_HOURS: Final = 0.25
"""Every table keeps so much, unless ``job.vacuum_retention_hours`` says otherwise."""
HOURS: Final[Sequence[float]] = (168.0, 48.0, 12.0, 3.0, 1.0, LEAST_HOURS)
"""What a table may keep, the longest first."""
VERSIONS: Final = 3600
"""A table keeps no more versions than these for longer than ``LEAST_HOURS``."""
LOOK_COMMITS: Final = VERSIONS // 8
"""How many commits of a table pass at most between two looks at how many versions it has."""


def hours_kept(now: float, ages: Sequence[float]) -> float:
    """Return how many hours of versions a table is to keep.

    ``now`` is how many it keeps, ``ages`` are those of its versions in seconds, the youngest first.
    A longer time is only chosen if half of ``VERSIONS`` would do, at the pace of the versions there
    are, so that the choice, of which each change takes a commit, does not alternate.
    """
    for hours in HOURS:
        if hours <= now and _within(hours, ages) <= VERSIONS:
            return hours
        if hours > now and _expected(hours, now, ages) <= VERSIONS / 2:
            return hours
    return LEAST_HOURS


def _expected(hours: float, now: float, ages: Sequence[float]) -> float:
    """Return how many versions a table will have in so many hours.

    After a change to a longer time the versions do not go back as far as they are to be kept.
    """
    covered = min(now * 3600, max(ages, default=1.0))
    return _within(now, ages) * hours * 3600 / max(1.0, covered)


def _within(hours: float, ages: Sequence[float]) -> int:
    return bisect_right(ages, hours * 3600)
