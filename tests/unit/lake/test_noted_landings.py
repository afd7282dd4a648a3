"""Ranges of landings with structure notes: there are few, and they contain every such landing."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.table.noted_landings import MOST, Ranges, with_landing

LANDINGS = st.lists(st.integers(1, 10_000), unique=True, max_size=300).map(sorted)


def ranges_of(landings: list[int], begun: Ranges = ()) -> Ranges:
    return reduce(with_landing, landings, begun)


@given(LANDINGS)
def test_every_landing_is_inside_few_ranges_in_order(landings: list[int]) -> None:
    ranges = ranges_of(landings)
    assert len(ranges) <= MOST
    assert all(any(a <= landing <= b for a, b in ranges) for landing in landings)
    ends = [end for pair in ranges for end in pair]
    assert ends == sorted(ends)
    assert {a for a, _ in ranges} | {b for _, b in ranges} <= set(landings)


def test_the_two_nearest_ranges_become_one() -> None:
    far = list(range(0, MOST * 100, 100))
    ranges = ranges_of([*far, far[-1] + 1])
    assert ranges[-1] == (far[-1], far[-1] + 1)
    assert ranges[:-1] == tuple((landing, landing) for landing in far[:-1])
