"""A step is a whole query where both have been measured and that is clearly the smaller work."""

from contextlib import closing

import pytest

from cdc.derive.step.measured import Measured
from tests.unit.derive.events import read
from tests.unit.derive.orders import one, order
from tests.unit.derive.small_lake import SmallLake, modes, rows_of

ROWS = 1000
BY_WHO = read("SELECT o.who, count(*) AS n FROM shop.orders AS o GROUP BY o.who", "by_who")


def measured(*scoped: float, whole: float = 0.2, rows: int = ROWS) -> Measured:
    """Return the costs of a table that was built, and then followed by its scope key."""
    found = Measured()
    found.took_whole(whole, rows)
    for seconds in scoped:
        found.took_scoped(seconds)
    return found


def test_the_first_step_by_the_scope_key_says_nothing() -> None:
    assert not measured(9.0).prefers_whole(ROWS)
    assert measured(9.0, 0.3).prefers_whole(ROWS)


@pytest.mark.parametrize(
    ("scoped", "whole", "rows"),
    [
        pytest.param(0.3, 0.25, ROWS, id="hardly cheaper"),
        pytest.param(0.09, 0.01, ROWS, id="the step is short"),
        pytest.param(9.0, 1.1, ROWS, id="the whole query is long"),
        pytest.param(0.9, 0.4, 2 * ROWS, id="the inputs have grown"),
        pytest.param(0.9, 0.01, 5 * ROWS, id="they have grown by too much to tell"),
    ],
)
def test_else_the_scope_key_is_followed(scoped: float, whole: float, rows: int) -> None:
    assert not measured(9.0, scoped, whole=whole).prefers_whole(rows)


def test_the_least_of_the_last_steps_counts() -> None:
    assert not measured(9.0, 5.0, 0.2, 5.0).prefers_whole(ROWS)
    assert measured(9.0, 0.2, 5.0, 5.0, 5.0).prefers_whole(ROWS)


def test_an_empty_table_that_was_built_says_nothing_of_a_full_one() -> None:
    assert not measured(9.0, 9.0, whole=0.01, rows=0).prefers_whole(ROWS)


def test_a_step_by_the_scope_key_is_measured_again_after_many_whole_queries() -> None:
    found = measured(9.0, 0.3)
    whole = 0
    while found.prefers_whole(ROWS):
        found.took_whole(0.2, ROWS)
        whole += 1
    found.took_scoped(7.0)  # it gets the inputs into memory
    assert not found.prefers_whole(ROWS)
    found.took_scoped(0.1)
    assert not found.prefers_whole(ROWS)
    assert whole == 16


@pytest.mark.parametrize("allowed", [True, False])
def test_a_step_is_done_as_a_whole_where_that_is_preferred(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, *, allowed: bool
) -> None:
    monkeypatch.setattr(Measured, "may_prefer_whole", property(lambda _: True))
    monkeypatch.setattr(Measured, "prefers_whole", lambda *_: True)
    lake.measured = allowed
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        one(kept, lake)
        lake.set(orders=[order(1, "b"), order(2, "c")])
        entry = one(kept, lake)

    assert [row[0] for row in rows_of(entry)] == ["b", "c"]
    assert modes(entry) == ["whole", "whole" if allowed else "scoped"]
