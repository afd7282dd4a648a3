"""Decides which small files of a table are worth rewriting into one. Pure.

The bytes rewritten have to be in proportion to what has changed, however large the table is: the
files of old versions stay on disk as long as those versions can be opened.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

SMALL_BYTES: Final = 32 * 1024 * 1024
DELETED_SHARE: Final = 0.2
"""If a larger share of rows is marked deleted, rewriting pays however large the files are: it costs
at most five times what was deleted."""
TIERS: Final = 11
"""How often a size triples from the smallest file to ``SMALL_BYTES``. ``rewritten`` may leave this
many small files, in addition to fewer than ``together``."""


def rewritten(sizes: Iterable[int], together: int, limit: float = SMALL_BYTES) -> list[int]:
    """Return the sizes in bytes of the files to rewrite into one, ascending; empty if none pays.

    They are the smallest files below ``limit``, at least ``together`` of them, and the largest is
    at most twice the sum of the others, so two of similar size qualify. So a rewrite costs at most
    three times what has accumulated beside the largest file, and a file larger than twice
    everything that came since is left alone. ``limit`` is infinite for a table whose files may
    grow without bound.
    """
    small = sorted(size for size in sizes if size < limit)
    sums = accumulate(small)
    fit = [
        count
        for count, (size, total) in enumerate(zip(small, sums, strict=True), 1)
        if count >= together and size <= 2 * (total - size)
    ]
    return small[: max(fit, default=0)]
