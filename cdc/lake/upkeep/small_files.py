"""Small files: which of a table's are worth rewriting into one. Pure.

What is written has to follow what has changed, however large the table is and however long it
grows: the files of old versions stay for as long as these can be opened.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

SMALL_BYTES: Final = 32 * 1024 * 1024
TIERS: Final = 11
"""How often a size triples from the smallest file to ``SMALL_BYTES``: so many files may be left of
those that ``rewritten`` is asked about, beside fewer than go together."""


def rewritten(sizes: Iterable[int], together: int, limit: float = SMALL_BYTES) -> list[int]:
    """The sizes in bytes of the files to be rewritten into one, ascending; none if it does not pay.

    ``limit`` is infinite for a table whose files may grow on.

    They are the smallest ones below ``limit``, at least ``together``, and the largest of them is
    at most twice all others of them: two that are nearly alike go together. So a rewriting costs at
    most three times what has gathered beside the largest, and a file that is larger than twice all
    which came since is left alone.
    """
    small = sorted(size for size in sizes if size < limit)
    sums = accumulate(small)
    fit = [
        count
        for count, (size, total) in enumerate(zip(small, sums, strict=True), 1)
        if count >= together and size <= 2 * (total - size)
    ]
    return small[: max(fit, default=0)]
