"""A watermark is what its definition says, read from the whole log each time."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Event, Row, Transaction
from cdc.derive.sql.event_window import EventWindow
from tests.unit.derive.late.logs import MINUTE, RULE, read, row

FIVE = 5 * MINUTE
ROWS = st.builds(row, st.none() | st.integers(-40, 120))
EVENTS = st.builds(Event, st.none() | ROWS, st.none() | ROWS).filter(
    lambda event: (event.before, event.after) != (None, None)
)
TRANSACTIONS = st.builds(
    Transaction,
    st.integers(0, 90).map(lambda minutes: minutes * MINUTE),
    st.lists(EVENTS, max_size=4).map(tuple),
)
FORMS = st.sampled_from(
    [
        EventWindow(form="tumble", time="ts", length=4 * FIVE, slide=4 * FIVE, origin=FIVE),
        EventWindow(form="hop", time="ts", length=6 * FIVE, slide=2 * FIVE),
        EventWindow(form="sessions", time="ts", length=2 * FIVE),
    ]
)
RULES = st.builds(
    lambda window, allowed, idle: replace(
        RULE, window=window, allowed=allowed * FIVE, idle=None if idle is None else idle * FIVE
    ),
    FORMS,
    st.integers(0, 3),
    st.none() | st.integers(0, 4),
)


@settings(max_examples=400, deadline=None)
@given(log=st.lists(TRANSACTIONS, max_size=12), rule=RULES, cuts=st.integers(1, 12))
def test_it_is_what_its_definition_says(
    log: Sequence[Transaction], rule: LateRule, cuts: int
) -> None:
    state, _ = read(log, rule, cuts=cuts)

    assert state.time(rule) == watermark(log, rule)
    assert state.late == sum(
        any(is_over(side.time, watermark(log[:place], rule), rule) for side in sides(event))
        for place, transaction in enumerate(log)
        for event in transaction.events
    )
    new = [(t, event.after) for t in log for event in t.events if event.before is None]
    assert state.no_time == sum(row is not None and row.time is None for _, row in new)
    assert state.future == sum(
        row is not None and row.time is not None and row.time - t.committed > 5 * MINUTE
        for t, row in new
    )


def watermark(log: Sequence[Transaction], rule: LateRule) -> int | None:
    """Design 3.8: the larger of the newest row and the newest commit minus idle, minus allowed."""
    newest = [
        event.after.time
        for transaction in log
        for event in transaction.events
        if event.before is None and event.after is not None and event.after.time is not None
        if event.after.time - transaction.committed <= 5 * MINUTE
    ]
    rests = [] if rule.idle is None else [each.committed - rule.idle for each in log]
    return max(newest + rests) - rule.allowed if newest + rests else None


def is_over(time: int | None, until: int | None, rule: LateRule) -> bool:
    """Return whether every window that has the time ended by then, trying all windows."""
    if time is None or until is None:
        return False
    assert isinstance(rule.window, EventWindow)
    if rule.window.form == "sessions":
        return time + rule.window.length <= until
    length, slide = rule.window.length, rule.window.slide
    starts = range(rule.window.origin - 40 * slide, 200 * MINUTE, slide)
    having = [start for start in starts if start <= time < start + length]
    assert len(having) == length // slide
    return all(start + length <= until for start in having)


def sides(event: Event) -> list[Row]:
    return [side for side in (event.before, event.after) if side is not None]
