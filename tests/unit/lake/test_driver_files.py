"""Test which files this process combines: little work at once, little in all, few files left."""

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.commit.deletion_vector import Vector
from cdc.lake.commit.replay import LiveFile
from cdc.lake.upkeep.driver_files import (
    LOCAL_BYTES,
    LOCAL_ROWS,
    LOCAL_TIERS,
    PURGED_BYTES,
    PURGED_ROWS,
    TOGETHER,
    WORK_BYTES,
    combined,
    is_purged_here,
    purged,
)

KB = 1024


def files(*sizes: int, rows: int | None = 1) -> list[LiveFile]:
    stats = None if rows is None else json.dumps({"numRecords": rows})
    return [
        LiveFile(path=f"part-{number}", size=size, modified=number, stats=stats)
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([5] * (TOGETHER - 1), []),
        ([5] * TOGETHER, [5] * TOGETHER),
        ([9000, *[5] * TOGETHER], [5] * TOGETHER),  # larger than twice the others together
        ([LOCAL_BYTES] * 40, []),  # Spark's
        ([LOCAL_BYTES - 1] * 40, [LOCAL_BYTES - 1] * TOGETHER),  # more is not one work
        ([LOCAL_BYTES, *[6] * 4, *[5] * 4], [*[6] * 4, *[5] * 4]),  # the oldest first
    ],
)
def test_the_smallest_files_are_combined(sizes: list[int], expected: list[int]) -> None:
    assert [file.size for file in combined(files(*sizes))] == expected


@pytest.mark.parametrize("rows", [LOCAL_ROWS, None])
def test_files_of_many_rows_or_an_unknown_number_are_left_to_spark(rows: int | None) -> None:
    assert combined(files(*[5] * TOGETHER, rows=rows)) == []


@given(st.lists(st.integers(500, 2 * LOCAL_BYTES), max_size=200))
def test_one_work_is_bounded(sizes: list[int]) -> None:
    chosen = combined(files(*sizes))

    assert sum(file.size for file in chosen) <= WORK_BYTES
    assert not chosen or len(chosen) >= TOGETHER
    assert all(file.size < LOCAL_BYTES for file in chosen)


@given(st.lists(st.integers(1024, 2 * LOCAL_BYTES), max_size=200))
def test_few_small_files_are_left(sizes: list[int]) -> None:
    left = files(*sizes)
    while chosen := combined(left):
        rest = [file.size for file in left if file not in chosen]
        left = files(*rest, sum(file.size for file in chosen))

    assert sum(file.size < LOCAL_BYTES for file in left) < TOGETHER + LOCAL_TIERS


@pytest.mark.parametrize("most", [2, 40, 400])
def test_each_byte_is_written_as_often_as_sizes_grow_by_half(most: int) -> None:
    draw, sizes, added, written, largest = random.Random(most), list[int](), 0, 0, 0
    for _ in range(5_000):
        sizes.append(draw.randint(1, most) * KB)
        added += sizes[-1]
        if gone := [file.size for file in combined(files(*sizes))]:
            for size in gone:
                sizes.remove(size)
            sizes.append(sum(gone))
            written += sum(gone)
        largest = max(largest, sum(size < LOCAL_BYTES for size in sizes))

    assert largest < TOGETHER + LOCAL_TIERS
    assert written <= added * (math.log(LOCAL_BYTES / KB, 1.5) + 1)


def marked(size: int, rows: int, deleted: int) -> LiveFile:
    """Return a file of which some rows are deleted."""
    (file,) = files(size, rows=rows)
    vector = Vector(storage="u", place="x" * 20, offset=1, size=40, cardinality=deleted)
    return replace(file, path=f"{size}-{rows}-{deleted}", vector=vector)


@pytest.mark.parametrize(
    ("size", "rows", "deleted", "worth"),
    [
        (LOCAL_BYTES, 10, 2, False),
        (LOCAL_BYTES, 10, 3, True),
        (LOCAL_BYTES - 1, 10, 9, False),  # combined with others
        (LOCAL_BYTES - 1, LOCAL_ROWS, LOCAL_ROWS // 2, True),  # never combined
        (PURGED_BYTES - 1, 10, 9, True),
        (PURGED_BYTES, 10, 9, False),  # Spark's
        (LOCAL_BYTES, PURGED_ROWS, PURGED_ROWS - 1, False),
    ],
)
def test_a_file_is_purged_here_if_spark_is_not_to(
    size: int, rows: int, deleted: int, worth: bool
) -> None:
    file = marked(size, rows, deleted)
    assert purged([file, *files(LOCAL_BYTES)]) == ([file] if worth else [])


def test_the_file_of_which_most_is_deleted_is_purged_first() -> None:
    worst = marked(LOCAL_BYTES, 100, 80)
    assert purged([marked(LOCAL_BYTES, 100, 30), worst, marked(LOCAL_BYTES, 100, 40)]) == [worst]


def test_a_file_of_an_unknown_number_of_rows_is_sparks() -> None:
    assert not is_purged_here(files(1, rows=None)[0])
