"""A budget of minutes runs some cases of every file, in an order given by a seed."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.scenes.budget import Budget, Case, shuffled

CASES = [(f, t, n) for f in ("a", "b", "c") for t in ("first", "then") for n in range(4)]


def case(item: tuple[str, str, int]) -> Case:
    return item[0], item[1]


def run(budget: Budget, items: Sequence[tuple[str, float]], now: list[float]) -> list[str]:
    """Run the cases that fit, each for its seconds; return their files."""
    admitted = []
    for file, seconds in items:
        if budget.has_room(file):
            admitted.append(file)
            now[0] += seconds
    return admitted


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@given(st.integers(0, 2**32 - 1))
def test_every_case_comes_once_and_a_file_and_a_test_stay_together(seed: int) -> None:
    order = shuffled(CASES, case, seed)

    assert sorted(order) == sorted(CASES)
    for file in ("a", "b", "c"):
        places = [place for place, item in enumerate(order) if item[0] == file]
        assert places == list(range(places[0], places[0] + 8))
        assert [item[1] for item in order if item[0] == file] == ["first"] * 4 + ["then"] * 4


def test_a_seed_gives_one_order_and_others_give_others() -> None:
    assert shuffled(CASES, case, 1) == shuffled(CASES, case, 1)
    assert len({tuple(shuffled(CASES, case, seed)) for seed in range(20)}) > 10


def test_each_file_has_a_share_of_what_is_left(now: list[float]) -> None:
    budget = Budget(60.0, ["a", "b", "c"], lambda: now[0])

    files = run(budget, [(file, 10.0) for file in "aaaaabbbbbccccc"], now)

    assert files == ["a", "a", "b", "b", "c", "c"]
    assert now == [1060.0]


def test_the_time_that_a_file_leaves_goes_to_others(now: list[float]) -> None:
    budget = Budget(60.0, ["a", "b"], lambda: now[0])

    assert run(budget, [("a", 10.0), *[("b", 10.0)] * 9], now) == ["a", *["b"] * 5]


def test_nothing_begins_behind_the_end(now: list[float]) -> None:
    budget = Budget(60.0, ["a", "b"], lambda: now[0])

    assert run(budget, [("a", 70.0), ("a", 1.0), ("b", 1.0), ("b", 1.0)], now) == ["a"]
