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
from cdc.lake.upkeep.small_files import rewritten

LOCAL_BYTES: Final = 2 * 1024 * 1024
"""Files of this size and more are left to Spark."""
LOCAL_ROWS: Final = 250_000
"""So are files of so many rows: text that repeats itself is small only on disk."""
TOGETHER: Final = 8
"""The fewest files that are combined."""
WORK_BYTES: Final = TOGETHER * LOCAL_BYTES
"""The most bytes that are combined at once; so many files of any size below fit in."""
LOCAL_TIERS: Final = 7
"""How often a size triples from 1 kB to ``LOCAL_BYTES``. Fewer than ``TOGETHER`` small files and
these are left, in addition to what one work cannot hold."""


def combined(files: Iterable[LiveFile]) -> list[LiveFile]:
    """Return the files to combine into one, the oldest first; empty if none are worth it."""
    small = sorted(filter(_is_small, files), key=lambda file: (file.size, file.path))
    fit = rewritten([file.size for file in small], TOGETHER, inf)
    within = sum(total <= WORK_BYTES for total in accumulate(fit))
    return sorted(small[:within], key=lambda file: (file.modified, file.path))


def _is_small(file: LiveFile) -> bool:
    if file.size >= LOCAL_BYTES:
        return False
    try:
        return file.records < LOCAL_ROWS
    except TakeMergeError:  # the log does not have its number of rows
        return False
