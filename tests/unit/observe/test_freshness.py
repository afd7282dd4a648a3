"""Tests of freshness, the time from a commit to the cut that includes it."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.observe.freshness import freshness, percentile

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_transaction_counts_from_its_commit_to_the_first_cut_that_holds_it() -> None:
    commits = [(10, at(0)), (20, at(1)), (30, at(2)), (40, at(3))]
    cuts = [(None, at(0)), (20, at(4)), (30, at(5)), (30, at(50))]

    found = freshness(commits, cuts)

    assert (found.transactions, found.waiting) == (3, 1)
    assert (found.p50, found.p99, found.max) == (3.0, 4.0, 4.0)


def test_nothing_published_has_no_freshness() -> None:
    found = freshness([(10, at(0))], [(None, at(1))])

    assert (found.transactions, found.waiting) == (0, 1)
    assert all(math.isnan(value) for value in (found.p50, found.p99, found.max))


@given(
    lsns=st.lists(st.integers(0, 50), max_size=20),
    cuts=st.lists(st.integers(0, 50), max_size=10),
)
def test_it_agrees_with_comparing_every_cut_with_every_transaction(
    lsns: list[int], cuts: list[int]
) -> None:
    published = [(lsn, at(1000 + lsn)) for lsn in cuts]
    expected = sorted(
        min(1000 + cut for cut in cuts if cut >= lsn) for lsn in lsns if any(c >= lsn for c in cuts)
    )

    found = freshness([(lsn, START) for lsn in lsns], published)

    assert found.transactions == len(expected)
    assert found.waiting == len(lsns) - len(expected)
    if expected:
        assert (found.p50, found.max) == (percentile(expected, 0.5), expected[-1])


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_percentile_is_a_value_that_occurred(share: float, expected: float) -> None:
    assert percentile(list(range(1, 101)), share) == expected
