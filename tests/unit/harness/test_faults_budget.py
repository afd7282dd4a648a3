"""A budget of minutes: some of every file, in an order that a seed gives."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.scenes.budget import Budget, Case, shuffled

CASES = [(f, t, n) for f in ("a", "b", "c") for t in ("first", "then") for n in range(4)]


def case(item: tuple[str, str, int]) -> Case:
    return item[0], item[1]


def run(budget: Budget, items: Sequence[tuple[str, float]], now: list[float]) -> list[str]:
    """The files of those that were let in; each takes its seconds."""
    found = []
    for file, seconds in items:
        if budget.has_room(file):
            found.append(file)
            now[0] += seconds
    return found


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@given(st.integers(0, 2**32 - 1))
def test_every_case_comes_once_and_a_file_and_a_test_stay_together(seed: int) -> None:
    found = shuffled(CASES, case, seed)

    assert sorted(found) == sorted(CASES)
    for file in ("a", "b", "c"):
        places = [place for place, item in enumerate(found) if item[0] == file]
        assert places == list(range(places[0], places[0] + 8))
        assert [item[1] for item in found if item[0] == file] == ["first"] * 4 + ["then"] * 4


def test_a_seed_gives_one_order_and_others_give_others() -> None:
    assert shuffled(CASES, case, 1) == shuffled(CASES, case, 1)
    assert len({tuple(shuffled(CASES, case, seed)) for seed in range(20)}) > 10


def test_each_file_has_a_share_of_what_is_left(now: list[float]) -> None:
    budget = Budget(60.0, ["a", "b", "c"], lambda: now[0])

    found = run(budget, [(file, 10.0) for file in "aaaaabbbbbccccc"], now)

    assert found == ["a", "a", "b", "b", "c", "c"]
    assert now == [1060.0]


def test_what_a_file_leaves_others_have(now: list[float]) -> None:
    budget = Budget(60.0, ["a", "b"], lambda: now[0])

    assert run(budget, [("a", 10.0), *[("b", 10.0)] * 9], now) == ["a", *["b"] * 5]


def test_nothing_begins_behind_the_end(now: list[float]) -> None:
    budget = Budget(60.0, ["a", "b"], lambda: now[0])

    assert run(budget, [("a", 70.0), ("a", 1.0), ("b", 1.0), ("b", 1.0)], now) == ["a"]
