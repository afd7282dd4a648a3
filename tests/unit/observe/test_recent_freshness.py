"""Freshness is that of the last minute's cuts."""

import math
from datetime import UTC, datetime, timedelta

from cdc.observe.recent_freshness import WINDOW_SECONDS, RecentFreshness

AT = datetime(2026, 1, 2, tzinfo=UTC)


def before(*seconds: float) -> list[datetime]:
    return [AT - timedelta(seconds=each) for each in seconds]


def test_all_transactions_of_all_recent_cuts_count() -> None:
    recent = RecentFreshness(lambda: 0.0)
    recent.published(before(3, 1), AT)
    recent.published(before(2), AT)
    found = recent.reached()
    assert (found.transactions, found.p50, found.p99) == (3, 2.0, 3.0)


def test_a_cut_is_forgotten_after_a_minute() -> None:
    now = [0.0]
    recent = RecentFreshness(lambda: now[0])
    recent.published(before(9), AT)
    now[0] = WINDOW_SECONDS
    assert recent.reached().transactions == 1
    now[0] += 0.1
    assert recent.reached().transactions == 0
    assert math.isnan(recent.reached().p50)


def test_a_cut_without_transactions_says_nothing() -> None:
    recent = RecentFreshness(lambda: 0.0)
    recent.published([], AT)
    assert math.isnan(recent.reached().p99)
