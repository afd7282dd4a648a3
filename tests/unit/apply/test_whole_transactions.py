"""A cut reaches as far as transactions are complete in every topic."""

from datetime import UTC, datetime

import pytest

from cdc.apply.rounds.whole_transactions import Span, find_cut
from cdc.events.transactions import END, Marker


def end(txid: int, lsn: int, **counts: int) -> Marker:
    at = datetime.fromtimestamp(lsn, tz=UTC)
    return Marker(txid=txid, lsn=lsn, status=END, counts=counts, committed_at=at)


LAST = {"a": 9, "b": 9}
ENDS = [end(1, 10, a=2), end(2, 20, a=1, b=2)]


def test_a_cut_has_every_complete_transaction() -> None:
    landed = {"a": {1: Span(2, 0, 4), 2: Span(1, 9, 9)}, "b": {2: Span(2, 7, 9)}}

    cut = find_cut(ENDS, landed, LAST, bound=None)

    assert (cut.lsn, cut.transactions, cut.offsets) == (20, 2, LAST)
    assert cut.committed_at == datetime.fromtimestamp(20, tz=UTC)
    assert cut.incomplete is None


def test_an_incomplete_transaction_is_outside_in_every_topic() -> None:
    landed = {"a": {1: Span(2, 0, 4), 2: Span(1, 5, 5)}, "b": {2: Span(1, 7, 7)}}

    cut = find_cut(ENDS, landed, LAST, bound=None)

    assert (cut.lsn, cut.transactions, cut.incomplete) == (10, 1, 2)
    assert cut.offsets == {"a": 4, "b": 6}


def test_a_topic_without_landed_events_is_waited_for() -> None:
    landed = {"a": {1: Span(2, 0, 4), 2: Span(1, 5, 5)}}

    cut = find_cut(ENDS, landed, {"a": 9, "b": -1}, bound=None)

    assert (cut.lsn, cut.incomplete, cut.offsets) == (10, 2, {"a": 4, "b": -1})


@pytest.mark.parametrize("lost", ["not read", "ignored"])
def test_a_topic_that_is_not_read_or_ignored_is_not_waited_for(lost: str) -> None:
    landed = {"a": {1: Span(2, 0, 4), 2: Span(1, 5, 5)}}
    last = {"a": 9} if lost == "not read" else LAST
    ignored = ["b"] if lost == "ignored" else []

    cut = find_cut(ENDS, landed, last, bound=None, ignored=ignored)

    assert (cut.lsn, cut.incomplete, cut.offsets) == (20, None, last)


def test_a_transaction_without_an_end_is_outside() -> None:
    landed = {"a": {1: Span(2, 0, 4), 3: Span(1, 6, 6)}}

    cut = find_cut(ENDS[:1], landed, LAST, bound=None)

    assert (cut.lsn, cut.incomplete, cut.offsets) == (10, None, {"a": 5, "b": 9})


@pytest.mark.parametrize(
    ("bound", "lsn", "a"), [(9, None, -1), (10, 10, 4), (19, 10, 4), (20, 20, 9)]
)
def test_a_bound_stops_the_cut_before_later_commits(bound: int, lsn: int | None, a: int) -> None:
    landed = {"a": {1: Span(2, 0, 4), 2: Span(1, 5, 9)}, "b": {2: Span(2, 7, 9)}}

    cut = find_cut(ENDS, landed, LAST, bound=bound)

    assert (cut.lsn, cut.offsets["a"], cut.incomplete) == (lsn, a, None)


def test_during_the_snapshot_a_cut_has_all_landed_rows_and_no_lsn() -> None:
    cut = find_cut([], {}, LAST, bound=None)

    assert (cut.lsn, cut.committed_at, cut.transactions, cut.offsets) == (None, None, 0, LAST)


def test_a_transaction_without_events_of_captured_tables_counts() -> None:
    cut = find_cut([end(1, 10, other=4)], {}, LAST, bound=None)

    assert (cut.lsn, cut.transactions) == (10, 1)
