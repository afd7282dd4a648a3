"""How long old versions are kept follows their number, and does not alternate."""

from collections.abc import Sequence

import pytest

from cdc.lake.upkeep.history import HOURS, LEAST_HOURS, VERSIONS, hours_kept

WEEK = 168.0


def every(seconds: float, hours: float) -> Sequence[float]:
    """Return the ages of versions that are made so often, as far back as they are kept."""
    return [seconds * number for number in range(1, int(hours * 3600 / seconds) + 1)]


@pytest.mark.parametrize(
    ("seconds", "hours"),
    [
        (3600, WEEK),
        (169, WEEK),
        (167, 48),
        (30, 12),
        (4, 3),
        (1, 1),
        (0.3, LEAST_HOURS),
        (0.1, LEAST_HOURS),
    ],
)
def test_no_more_versions_are_kept_than_a_checkpoint_can_hold(seconds: float, hours: float) -> None:
    assert hours_kept(WEEK, every(seconds, WEEK)) == hours


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.5, 1, 1.5, 5, 20, 60, 150, 200, 400, 3600])
def test_a_table_that_goes_on_as_before_keeps_what_it_kept(seconds: float) -> None:
    for began in HOURS:
        now = began
        for _ in HOURS:
            now = hours_kept(now, every(seconds, now))
        assert hours_kept(now, every(seconds, now)) == now
        assert len(every(seconds, now)) <= VERSIONS or now == LEAST_HOURS


def test_a_table_that_has_become_quiet_keeps_a_week_again() -> None:
    assert hours_kept(LEAST_HOURS, every(600, LEAST_HOURS)) == WEEK


def test_a_table_without_old_versions_keeps_a_week() -> None:
    assert hours_kept(WEEK, []) == hours_kept(LEAST_HOURS, []) == WEEK


def test_a_longer_time_is_not_chosen_before_a_shorter_one_has_passed() -> None:
    """Of the hour a quarter is there yet: it has as many versions as the other three will have."""
    assert hours_kept(1, every(2, LEAST_HOURS)) == 1
    assert hours_kept(1, every(2, 1)) == 1
    assert hours_kept(1, every(7, 1)) == 3
