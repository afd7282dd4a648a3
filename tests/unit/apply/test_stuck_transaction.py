"""A committed transaction that stays incomplete raises an alarm; one that fills up does not."""

from cdc.apply.rounds.stuck_transaction import StuckTransactionAlarm
from cdc.apply.rounds.whole_transactions import Cut, Span, find_cut
from cdc.events.transactions import Marker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def cut(landed: int) -> Cut:
    """Return the cut before a transaction with five events in one topic and two in another."""
    end = Marker(txid=7, lsn=50, status="END", counts={"w.a": 5, "w.b": 2})
    spans = {"w.a": {7: Span(landed, 0, landed - 1)}, "w.b": {7: Span(2, 0, 1)}}
    return find_cut([end], spans, {"w.a": landed - 1, "w.b": 1}, bound=None)


def test_the_alarm_names_the_missing_events_and_their_topics() -> None:
    clock = Clock()
    alarm = StuckTransactionAlarm(60, clock)

    assert alarm.look(cut(3)) == ""
    clock.now += 59.9
    assert alarm.look(cut(3)) == ""
    clock.now += 0.2
    assert "transaction 7 committed" in alarm.look(cut(3))
    assert "60 s: 3 of 5 events in w.a; " in alarm.look(cut(3))


def test_there_is_no_alarm_while_events_still_arrive() -> None:
    clock = Clock()
    alarm = StuckTransactionAlarm(60, clock)
    for landed in range(5):
        assert alarm.look(cut(landed)) == ""
        clock.now += 59


def test_a_cut_ends_the_alarm() -> None:
    clock = Clock()
    alarm = StuckTransactionAlarm(60, clock)
    alarm.look(cut(3))
    clock.now += 61
    assert alarm.look(cut(3))

    assert alarm.look(cut(5)) == ""
    assert alarm.look(None) == ""
    assert alarm.look(cut(3)) == "", "another 60 s begin"
