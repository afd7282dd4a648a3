"""A watermark follows from the log's transactions, one after the other."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Transaction, Watermark
from cdc.derive.sql.event_window import EventWindow
from tests.unit.derive.late.logs import (
    HOURLY,
    MINUTE,
    RULE,
    at,
    delete,
    heartbeat,
    insert,
    read,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

in_cuts = pytest.mark.parametrize("cuts", [1, 2, 4, 7])
HOP = EventWindow(form="hop", time="ts", length=60 * MINUTE, slide=20 * MINUTE)
GAP = EventWindow(form="sessions", time="ts", length=30 * MINUTE)


def counts(state: Watermark) -> tuple[int, int, int]:
    return state.late, state.future, state.no_time


def minute(state: Watermark, rule: LateRule = RULE) -> int | None:
    time = state.time(rule)
    return None if time is None else time // MINUTE


@in_cuts
def test_a_row_of_a_window_that_is_over_is_late(cuts: int) -> None:
    """Hazard 11: at 12:10 the window from 11:00 to 12:00 is over, at 12:09 it is not."""
    early = [insert(at("12:09"), committed=at("12:09")), insert(at("11:45"), committed=at("12:09"))]
    log = [insert(at("12:10"), committed=at("12:10")), insert(at("11:45"), committed=at("12:10"))]

    assert counts(read(early, cuts=cuts)[0]) == (0, 0, 0)
    assert counts(read(log, cuts=cuts)[0]) == (1, 0, 0)


@in_cuts
def test_rows_of_one_transaction_make_none_of_it_late(cuts: int) -> None:
    together = [insert(at("12:30"), at("11:45"), committed=at("12:30"))]

    assert read(together, cuts=cuts)[0].late == 0


@in_cuts
def test_the_cuts_play_no_part(cuts: int) -> None:
    """Hazard 12."""
    times = ["10:00", "12:30", "11:50", "11:20", "13:30", "12:50", "13:00"]
    log = [insert(at(time), committed=at("13:30")) for time in times]

    state, _ = read(log, cuts=cuts)

    assert (minute(state), state.late) == (at("13:20"), 3)


@in_cuts
def test_events_of_rows_in_windows_that_are_over_are_late(cuts: int) -> None:
    """Hazard 13: also where only one side of an update is in such a window."""
    now = at("13:00")
    log: Sequence[Transaction] = [
        insert(at("11:45"), at("12:20"), at("12:55"), committed=now),
        delete(at("11:45"), committed=now),
        update(at("11:50"), at("12:55"), committed=now),
        update(at("12:20"), at("11:10"), committed=now),
        update(at("12:20"), at("12:40"), committed=now),
        delete(at("12:40"), committed=now),
    ]

    assert read(log, cuts=cuts)[0].late == 3


@in_cuts
def test_a_row_from_the_future_moves_nothing(cuts: int) -> None:
    """Hazard 14: five minutes after its commit it still counts, more is too far."""
    now = at("12:00")
    log = [insert(now, committed=now), insert(now + 120, committed=now), insert(now, committed=now)]
    near = [insert(now + 5, committed=now)]
    far = [insert(now + 6, committed=now)]

    state, _ = read(log, cuts=cuts)

    assert (minute(state), counts(state)) == (now - 10, (0, 1, 0))
    assert minute(read(near, cuts=cuts)[0]) == now - 5
    assert (minute(read(far, cuts=cuts)[0]), read(far)[0].future) == (None, 1)


@in_cuts
def test_heartbeats_close_the_windows_of_a_table_that_rests(cuts: int) -> None:
    """Hazard 15: with ``idle`` alone."""
    rule = replace(RULE, idle=30 * MINUTE)
    first = insert(at("11:59"), committed=at("11:59"))
    log = [first, heartbeat(at("12:30")), heartbeat(at("12:40"))]

    assert minute(read(log, rule, cuts=cuts)[0], rule) == at("12:00")
    assert minute(read(log[:2], rule, cuts=cuts)[0], rule) == at("11:50")
    assert minute(read(log, cuts=cuts)[0]) == at("11:49")


@in_cuts
def test_a_row_without_a_time_is_counted_and_nothing_else(cuts: int) -> None:
    """Hazard 20."""
    log = [insert(None, None, committed=at("12:00")), insert(at("12:00"), committed=at("12:00"))]

    state, _ = read(log, cuts=cuts)

    assert (minute(state), counts(state)) == (at("11:50"), (0, 0, 2))


@in_cuts
def test_a_clock_that_is_set_back_does_not_move_it_back(cuts: int) -> None:
    rule = replace(RULE, idle=0)
    log = [insert(at("12:00"), committed=at("12:30")), heartbeat(at("09:00"))]

    assert minute(read(log, rule, cuts=cuts)[0], rule) == at("12:20")


@in_cuts
def test_an_update_does_not_move_it(cuts: int) -> None:
    log = [
        insert(at("12:00"), committed=at("12:30")),
        update(at("12:00"), at("12:29"), committed=at("12:30")),
    ]

    assert minute(read(log, cuts=cuts)[0]) == at("11:50")


@pytest.mark.parametrize(
    ("window", "time", "end"),
    [
        (HOURLY, at("11:00"), at("12:00")),
        (HOURLY, at("11:59"), at("12:00")),
        (HOURLY, -1, 0),
        (replace(HOURLY, origin=15 * MINUTE), at("11:14"), at("11:15")),
        (replace(HOURLY, origin=15 * MINUTE), at("11:15"), at("12:15")),
        (HOP, at("11:19"), at("12:00")),
        (HOP, at("11:20"), at("12:20")),
        (GAP, at("11:19"), at("11:49")),
    ],
)
def test_the_last_window_of_a_row(window: EventWindow, time: int, end: int) -> None:
    rule = replace(RULE, window=window)

    assert rule.last_end(time * MINUTE) == end * MINUTE
    assert not rule.is_late(time * MINUTE, end * MINUTE - 1)
    assert rule.is_late(time * MINUTE, end * MINUTE)
