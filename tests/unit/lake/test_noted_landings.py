"""Landings that hold notes, as few ranges: none of them is ever outside."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.table.noted_landings import MOST, Ranges, with_landing

LANDINGS = st.lists(st.integers(1, 10_000), unique=True, max_size=300).map(sorted)


def ranges_of(landings: list[int], begun: Ranges = ()) -> Ranges:
    return reduce(with_landing, landings, begun)


@given(LANDINGS)
def test_every_landing_is_inside_few_ranges_in_order(landings: list[int]) -> None:
    found = ranges_of(landings)
    assert len(found) <= MOST
    assert all(any(a <= landing <= b for a, b in found) for landing in landings)
    ends = [end for place in found for end in place]
    assert ends == sorted(ends)
    assert {a for a, _ in found} | {b for _, b in found} <= set(landings)


def test_the_nearest_two_become_one() -> None:
    far = list(range(0, MOST * 100, 100))
    found = ranges_of([*far, far[-1] + 1])
    assert found[-1] == (far[-1], far[-1] + 1)
    assert found[:-1] == tuple((each, each) for each in far[:-1])
