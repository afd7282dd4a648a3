"""Freshness is measured by commits that a cut surely contains."""

from datetime import UTC, datetime

import pytest

from cdc.demo.freshness_meter import FreshnessMeter


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_a_commit_is_covered_by_the_first_cut_that_reaches_its_lsn() -> None:
    freshness = FreshnessMeter()
    freshness.add_commit(lsn=100, at=10.0)
    freshness.add_commit(lsn=101, at=10.5)

    freshness.add_cut(lsn=99, at=at(11.0))
    freshness.add_cut(lsn=100, at=at(12.0))
    freshness.add_cut(lsn=150, at=at(13.0))

    assert freshness.seconds == pytest.approx([2.0, 2.5])
    assert freshness.uncovered_count == 0


def test_commits_noted_out_of_order_are_covered_by_lsn() -> None:
    freshness = FreshnessMeter()
    freshness.add_commit(lsn=200, at=2.0)
    freshness.add_commit(lsn=100, at=1.0)

    freshness.add_cut(lsn=100, at=at(3.0))

    assert freshness.seconds == pytest.approx([2.0])
    assert freshness.uncovered_count == 1


def test_the_oldest_waiting_commit_sets_the_age() -> None:
    freshness = FreshnessMeter()
    assert freshness.oldest_waiting(now=5.0) == 0.0

    freshness.add_commit(lsn=1, at=2.0)
    freshness.add_commit(lsn=2, at=4.0)

    assert freshness.oldest_waiting(now=5.0) == 3.0
