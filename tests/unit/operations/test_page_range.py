"""Test how a table is divided among readers, and how they are held to a pace."""

import pytest

from cdc.operations.first_snapshot.pace import Pace
from cdc.operations.first_snapshot.page_range import PageRange, page_ranges


@pytest.mark.parametrize("pages", [0, 1, 8191, 8192, 8193, 100_000, 10_000_000])
def test_ranges_are_the_table_without_gap_or_overlap(pages: int) -> None:
    ranges = page_ranges(pages)

    assert ranges[0].first == 0
    assert ranges[-1].end is None  # rows may be on pages that were added meanwhile
    assert [each.end for each in ranges[:-1]] == [each.first for each in ranges[1:]]
    assert len(ranges) <= 257
    assert len(ranges) > 1 or pages <= 8192


def test_a_small_table_is_one_range_without_a_condition() -> None:
    assert page_ranges(1) == [PageRange()]
    assert PageRange().condition is None


def test_a_range_names_its_pages() -> None:
    def text(pages: PageRange) -> str:
        assert pages.condition is not None
        return pages.condition.as_string(None)

    assert text(PageRange(0, 7)) == "ctid < '(7,0)'::tid"
    assert text(PageRange(7, 9)) == "ctid >= '(7,0)'::tid AND ctid < '(9,0)'::tid"
    assert text(PageRange(9)) == "ctid >= '(9,0)'::tid"


def test_rows_are_paced_over_all_callers() -> None:
    now = 100.0
    pace = Pace(1000, clock=lambda: now)

    assert pace.take(500) == pytest.approx(0.5)
    assert pace.take(500) == pytest.approx(1.0)
    now = 101.5
    assert pace.take(100) == pytest.approx(0.1)  # what was not taken before is not made up for


def test_no_pace_waits_for_nothing() -> None:
    assert Pace(0).take(10**9) == 0
