"""The stream's first cut waits until the whole first snapshot is applied."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cdc.apply.rounds.first_snapshot import FirstSnapshot, Offsets
from cdc.apply.rounds.log_slice import Slice
from cdc.apply.rounds.whole_transactions import Span
from cdc.errors import CdcError, ErrorKind
from cdc.events.transactions import END, Marker
from cdc.land.landing import Landing, TopicSpan

NOW = datetime(2026, 1, 2, tzinfo=UTC)
END_MARKER = Marker(status=END, txid=7, lsn=100, committed_at=NOW, counts={"t": 1})


def part(*ends: Marker, **first: int) -> Slice:
    """Return a slice with these END markers, and in some topics a transaction from an offset on."""
    return Slice(
        read=lambda: pytest.fail("rows were asked for"),
        ends=ends,
        end_offsets={},
        spans={topic: {7: Span(count=1, first=at, last=at)} for topic, at in first.items()},
        last={},
        undecodable=frozenset(),
        snapshots={},
    )


def unapplied(ends: Callable[[], Offsets], landed: Callable[[], Offsets] = dict) -> FirstSnapshot:
    return FirstSnapshot(ends, landed, marker_topic="markers", applied=False)


def snapshot(ends: Offsets, read: Offsets) -> FirstSnapshot:
    """Return a snapshot after which an END has landed."""
    first = unapplied(lambda: ends, lambda: read)
    assert first.held_back(part(END_MARKER), never).ends == []
    return first


def never(_topic: str, _offset: int) -> bool:
    return False


def landing(number: int) -> Landing:
    return Landing(number=number, topics={"t": TopicSpan(last=1, count=1)})


def test_all_records_at_the_first_question_are_waited_for() -> None:
    read, newest = {"t": 9}, [4]
    first = snapshot({"t": 10, "empty": 0}, read)

    assert first.landed_by(lambda: newest[-1]) is None
    read["t"] = 10
    assert first.landed_by(lambda: newest[-1]) == 4
    newest.append(7)
    assert first.landed_by(lambda: newest[-1]) == 4


def test_records_written_later_are_not_waited_for() -> None:
    answers: list[Offsets] = [{"t": 10}, {"t": 1000}]
    read = {"t": 9}
    first = unapplied(lambda: answers.pop(0), lambda: read)
    first.held_back(part(END_MARKER), never)
    assert first.landed_by(lambda: 1) is None
    read["t"] = 10

    assert first.landed_by(lambda: 2) == 2


def test_kafka_is_not_asked_before_an_end_has_landed() -> None:
    first = unapplied(lambda: pytest.fail("asked"))

    assert first.landed_by(lambda: 1) is None
    first.held_back(part(t=3), never)
    assert first.landed_by(lambda: 1) is None


def test_the_snapshot_has_not_landed_before_the_query_has_read() -> None:
    assert snapshot({"t": 1}, {}).landed_by(lambda: 1) is None


def test_an_unreachable_broker_is_asked_again() -> None:
    answers: list[Offsets | ErrorKind] = [ErrorKind.UNREACHABLE, {"t": 1}]

    def ends() -> Offsets:
        answer = answers.pop(0)
        if isinstance(answer, ErrorKind):
            raise CdcError(answer, "no Kafka broker answers")
        return answer

    first = unapplied(ends, lambda: {"t": 1})
    first.held_back(part(END_MARKER), never)

    assert first.landed_by(lambda: 3) is None
    assert first.landed_by(lambda: 3) == 3


def test_any_other_error_is_raised() -> None:
    def ends() -> Offsets:
        raise CdcError(ErrorKind.CHAIN_BROKEN, "another topic")

    first = unapplied(ends)
    first.held_back(part(END_MARKER), never)
    with pytest.raises(CdcError, match="another topic"):
        first.landed_by(lambda: 1)


def test_topics_that_the_stream_has_reached_wait_until_it_is_applied() -> None:
    first = snapshot({}, {})
    first.held_back(part(END_MARKER, small=5), never)
    assert first.open({"small": 4, "large": 9, "markers": -1}) == {"large": 9}

    first.look(3, [landing(2), landing(4)])
    assert not first.applied
    first.look(None, [])
    assert not first.applied
    first.look(3, [landing(4)])

    assert first.applied
    assert first.open({"small": 4, "markers": -1}) == {"small": 4, "markers": -1}
    assert first.held_back(part(END_MARKER), never).ends == (END_MARKER,)


def test_a_table_with_stream_events_shows_that_the_snapshot_was_applied() -> None:
    first = snapshot({}, {})

    whole = first.held_back(
        part(END_MARKER, small=5), lambda topic, at: (topic, at) == ("small", 5)
    )

    assert first.applied
    assert whole.ends == (END_MARKER,)
