"""The bytes rewritten are in proportion to the bytes added, and few files are left."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.upkeep.small_files import SMALL_BYTES, TIERS, rewritten

KB = 1024


@pytest.mark.parametrize(
    ("sizes", "together", "expected"),
    [
        ([], 2, []),
        ([5], 2, []),
        ([5, 5], 3, []),
        ([5, 5], 2, [5, 5]),
        ([5, 5, 21], 3, []),  # the large file exceeds twice the sum of the others
        ([5, 6], 2, [5, 6]),  # of similar size
        ([5, 5, 20], 3, [5, 5, 20]),
        ([10, 5, 5, 41], 3, [5, 5, 10]),
        ([1, 3, 4, 4], 3, [1, 3, 4, 4]),  # even if a smaller file exceeds twice those below it
        ([SMALL_BYTES] * 9, 2, []),
        ([*[5] * 4, *[SMALL_BYTES] * 4], 4, [5] * 4),
    ],
)
def test_the_smallest_files_are_rewritten_together(
    sizes: list[int], together: int, expected: list[int]
) -> None:
    assert rewritten(sizes, together) == expected


@pytest.mark.parametrize("together", [2, 4, 24, 32])
@pytest.mark.parametrize("most", [2, 40, 4000])
def test_each_byte_is_rewritten_as_often_as_sizes_grow_by_half(together: int, most: int) -> None:
    """The factor is logarithmic; if every file were rewritten each time, it would be thousands."""
    draw, files, added, written = random.Random(most), list[int](), 0, 0
    for _ in range(20_000):
        files.append(draw.randint(1, most) * KB)
        added += files[-1]
        if gone := rewritten(files, together, math.inf):
            for size in gone:
                files.remove(size)
            files.append(sum(gone))
            written += sum(gone)
        assert len(files) < together + math.log(added / KB, 3) + 1

    assert written <= added * math.log(added / KB, 1.5)


@given(st.lists(st.integers(512, 2 * SMALL_BYTES), max_size=200), st.integers(2, 40))
def test_few_small_files_are_left(sizes: list[int], together: int) -> None:
    left = sorted(sizes)
    while gone := rewritten(left, together):
        left = sorted([*left[len(gone) :], sum(gone)])

    assert sum(size < SMALL_BYTES for size in left) < together + TIERS


@given(st.lists(st.integers(1, 2 * SMALL_BYTES), max_size=100), st.integers(2, 40))
def test_a_size_separates_rewritten_files_from_others(sizes: list[int], together: int) -> None:
    """Delta's commands take a size limit, so no other file may be as small as a rewritten one."""
    gone = rewritten(sizes, together, math.inf)
    stay = sorted(sizes)[len(gone) :]

    assert all(size > sum(gone) for size in stay) or not gone
