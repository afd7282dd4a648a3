"""Decides which small files of a table the job's own process combines, without Spark. Pure.

One such work is bounded however large the table is, and files that have grown beyond it are left
to Spark's OPTIMIZE. Sizes are tiered as there (cdc/lake/upkeep/small_files.py), so a byte is
written as often as sizes grow by half from a commit's to ``LOCAL_BYTES``.
"""

from collections.abc import Iterable
from itertools import accumulate
from math import inf
from typing import Final

from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.upkeep.small_files import DELETED_SHARE, rewritten

LOCAL_BYTES: Final = 2 * 1024 * 1024
"""Files of this size and more are left to Spark."""
LOCAL_ROWS: Final = 250_000
"""So are files of so many rows: text that repeats itself is small only on disk."""
TOGETHER: Final = 8
"""The fewest files that are combined."""
WORK_BYTES: Final = TOGETHER * LOCAL_BYTES
"""The most bytes that are combined at once; so many files of any size below fit in."""
PURGED_BYTES: Final = 16 * 1024 * 1024
"""Files of this size and more are left to Spark when a part of their rows is deleted."""
PURGED_ROWS: Final = 500_000
LOCAL_TIERS: Final = 7
"""How often a size triples from 1 kB to ``LOCAL_BYTES``. Fewer than ``TOGETHER`` small files and
these are left, in addition to what one work cannot hold."""


def combined(files: Iterable[LiveFile]) -> list[LiveFile]:
    """Return the files to combine into one, the oldest first; empty if none are worth it."""
    return worth_combining(filter(_is_small, files), TOGETHER, limit=inf, most=WORK_BYTES)


def worth_combining(
    files: Iterable[LiveFile], together: int, *, limit: float, most: int
) -> list[LiveFile]:
    """Return at least ``together`` files to combine into one, the oldest first, or none.

    They are those of ``rewritten`` with its ``limit``, as far as they have ``most`` bytes in all.
    """
    by_size = sorted(files, key=lambda file: (file.size, file.path))
    fit = rewritten([file.size for file in by_size], together, limit)
    within = sum(total <= most for total in accumulate(fit))
    chosen = by_size[:within] if within >= together else []
    return sorted(chosen, key=lambda file: (file.modified, file.path))


def purged(files: Iterable[LiveFile]) -> list[LiveFile]:
    """Return a file to write again without its deleted rows, as a list; empty if none is worth it.

    ``combined`` has to do with the smaller ones: they get rid of deleted rows together.
    """
    large = [file for file in files if is_purged_here(file) and not _is_small(file)]
    worth = [file for file in large if _share(file) > DELETED_SHARE]
    return sorted(worth, key=_share)[-1:]


def is_purged_here(file: LiveFile) -> bool:
    """Return whether the file is small enough to be written again by this process."""
    try:
        return file.size < PURGED_BYTES and file.records < PURGED_ROWS
    except TakeMergeError:  # the log does not have its number of rows
        return False


def _share(file: LiveFile) -> float:
    return file.vector.cardinality / file.records if file.vector else 0.0


def _is_small(file: LiveFile) -> bool:
    if file.size >= LOCAL_BYTES:
        return False
    try:
        return file.records < LOCAL_ROWS
    except TakeMergeError:  # the log does not have its number of rows
        return False
