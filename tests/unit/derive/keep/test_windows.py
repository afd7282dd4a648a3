"""At every cut the rows are in the windows of their times as they are at that cut."""

import time as clocks
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.derive.events import (
    COUNTED,
    EVENTS,
    SESSIONS,
    Event,
    at,
    at_each_cut,
    entries,
    moment,
    read,
    row,
    written,
)
from tests.unit.derive.orders import one
from tests.unit.derive.small_lake import SmallLake, rows_of

both = pytest.mark.parametrize("time", ["ts", "tz"])


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, {"events": EVENTS})


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the process be in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    clocks.tzset()
    yield
    monkeypatch.undo()
    clocks.tzset()


def tumbled(time: str, length: str, origin: str = "") -> str:
    return COUNTED.format(form=f"tumble(shop.events, {time}, INTERVAL '{length}'{origin})")


@both
def test_a_row_moves_between_windows(lake: SmallLake, time: str) -> None:
    """Hazard 10."""
    cuts = at_each_cut(lake, tumbled(time, "1 hour"), at("10:05"), at("11:05"), at("11:59:59"), [])

    assert cuts == [
        [(moment("10:00", time), 1)],
        [(moment("11:00", time), 1)],
        [(moment("11:00", time), 1)],
        [],
    ]


@both
def test_a_session_is_split_and_merged(lake: SmallLake, time: str) -> None:
    """Hazard 16: the row in the middle goes, and comes again."""
    whole = at("00:00", "00:10", "00:20")
    split = [whole[0], whole[2]]

    cuts = at_each_cut(lake, SESSIONS.format(time=time), whole, split, whole)

    def session(start: str, end: str, rows: int) -> tuple[str, datetime, datetime, int]:
        return ("a", moment(start, time), moment(end, time), rows)

    merged = [session("00:00", "00:30", 3)]
    parts = [session("00:00", "00:10", 1), session("00:20", "00:30", 1)]
    assert cuts == [merged, parts, merged]


@both
def test_rows_exactly_the_gap_apart_are_one_session(lake: SmallLake, time: str) -> None:
    """Hazard 17; a microsecond more makes two, of each key alone."""
    near, far = at("00:00", "00:10"), at("00:00", "00:10:00.000001")
    others: list[Event] = [(5, "b", "00:05"), (6, None, "00:05"), (7, None, "00:15")]

    single, two, keys = at_each_cut(lake, SESSIONS.format(time=time), near, far, [*far, *others])

    first = ("a", moment("00:00", time), moment("00:10", time), 1)
    last = ("a", moment("00:10:00.000001", time), moment("00:20:00.000001", time), 1)
    assert single == [("a", moment("00:00", time), moment("00:20", time), 2)]
    assert two == [first, last]
    assert Counter(keys) == Counter(
        [
            first,
            last,
            ("b", moment("00:05", time), moment("00:15", time), 1),
            (None, moment("00:05", time), moment("00:25", time), 2),
        ]
    )


@both
def test_rows_at_one_time_are_of_one_session(lake: SmallLake, time: str) -> None:
    query = f"""\
SELECT w.id, w.window_start AS s FROM sessions(shop.events, {time}, INTERVAL '10 minutes') AS w"""
    events = at("00:00", "01:00", "01:00", "01:00", "01:10")

    (cut,) = at_each_cut(lake, query, events)

    assert cut == [(0, moment("00:00", time)), *((i, moment("01:00", time)) for i in range(1, 5))]


@both
@pytest.mark.parametrize("zone", ["", "berlin"])
def test_windows_begin_in_1970_whatever_the_zone_and_the_week(
    lake: SmallLake, time: str, zone: str, request: pytest.FixtureRequest
) -> None:
    """Hazard 18: a Thursday, as 1970-01-01."""
    if zone:
        request.getfixturevalue(zone)
    events = at("2024-03-31 00:30", "2024-03-27 23:59:59.999999")

    (weeks,) = at_each_cut(lake, tumbled(time, "7 days"), events)
    (days,) = at_each_cut(lake, tumbled(time, "1 day"), events)
    (given,) = at_each_cut(lake, tumbled(time, "7 days", ", TIMESTAMP '2024-01-01'"), events)

    assert weeks == [(moment("2024-03-21", time), 1), (moment("2024-03-28", time), 1)]
    assert days == [(moment("2024-03-27", time), 1), (moment("2024-03-31", time), 1)]
    assert given == [(moment("2024-03-25", time), 2)]


@both
def test_times_before_1970_and_at_an_edge(lake: SmallLake, time: str) -> None:
    """Hazard 19: a window ends before its end."""
    events = at("1969-12-31 23:58", "1969-12-31 23:55", "1970-01-01", "1969-12-31 23:54:59.999999")

    (cut,) = at_each_cut(lake, tumbled(time, "5 minutes"), events)

    assert Counter(cut) == Counter(
        [
            (moment("1969-12-31 23:50", time), 1),
            (moment("1969-12-31 23:55", time), 2),
            (moment("1970-01-01 00:00", time), 1),
        ]
    )


def test_a_day_of_a_zone_may_have_23_hours(lake: SmallLake) -> None:
    """Hazard 19: days of a zone are not windows of 24 hours."""
    query = """\
SELECT date_trunc('day', e.tz AT TIME ZONE 'Europe/Berlin') AS day, count(*) AS hours
FROM shop.events AS e GROUP BY 1"""
    first = moment("2024-03-29 23:00")
    hours = at(*(str(first + timedelta(hours=i)) for i in range(24 + 23 + 24)))

    (days,) = at_each_cut(lake, query, hours)
    (tumbles,) = at_each_cut(lake, tumbled("tz", "1 day", ", TIMESTAMP '2024-03-29 23:00'"), hours)

    assert [count for _, count in days] == [24, 23, 24]
    assert [start for start, _ in days] == [moment(f"2024-03-{day}") for day in (30, 31)] + [
        moment("2024-04-01")
    ]
    assert [count for _, count in tumbles] == [24, 24, 23]


@both
@pytest.mark.parametrize(
    "form",
    [
        "tumble(shop.events, {time}, INTERVAL '1 hour')",
        "hop(shop.events, {time}, INTERVAL '1 hour', INTERVAL '1 hour')",
        "sessions(shop.events, {time}, INTERVAL '1 hour', who)",
    ],
)
def test_a_row_without_a_time_is_in_no_window(lake: SmallLake, time: str, form: str) -> None:
    """Hazard 20: also when its time goes, and comes."""
    query = COUNTED.format(form=form.format(time=time))

    cuts = at_each_cut(lake, query, at("10:00", None), at(None, None), at("10:00", "10:00"))

    assert cuts == [[(moment("10:00", time), 1)], [], [(moment("10:00", time), 2)]]


@both
def test_a_row_hops(lake: SmallLake, time: str) -> None:
    """Hazard 21: of its five windows four stay when its time moves by one slide."""
    form = f"hop(shop.events, {time}, INTERVAL '2 minutes', INTERVAL '10 minutes')"
    before, after, gone = entries(lake, COUNTED.format(form=form), at("10:08"), at("10:10"), [])

    def windows(first: int) -> dict[datetime, int]:
        return {moment(f"10:{minute:02}", time): 1 for minute in range(first, first + 10, 2)}

    assert dict(rows_of(before)) == windows(0)
    assert dict(rows_of(after)) == windows(2)
    assert written(after) == (1, 1)
    assert rows_of(gone) == []


@both
def test_a_window_slides_with_each_row(lake: SmallLake, time: str) -> None:
    """The edge of RANGE belongs to it; a row that goes leaves the windows of those after it."""
    query = f"""\
SELECT e.id, count(*) OVER (ORDER BY e.{time} RANGE BETWEEN INTERVAL '1 hour' PRECEDING
AND CURRENT ROW) AS n FROM shop.events AS e"""
    events = at("10:00", "11:00", "11:00:00.000001", None)

    cuts = at_each_cut(lake, query, events, events[1:])

    assert cuts == [[(0, 1), (1, 2), (2, 2), (3, 1)], [(1, 1), (2, 2), (3, 1)]]


def test_windows_of_a_derived_table_follow_in_the_same_cut(lake: SmallLake) -> None:
    low = read("SELECT e.id, e.tz AS time FROM shop.events AS e WHERE e.who = 'a'", "low")
    high = read(COUNTED.format(form="tumble(marts.low, time, INTERVAL '1 day')"), "high")
    with closing(lake.keep(low, high)) as kept:
        for count in (2, 1):
            lake.set(events=[row(event) for event in at(*["10:00"] * count)])
            _, entry = kept.entries(lake.row())

            assert rows_of(entry) == [(moment("00:00", "tz"), count)]


@pytest.mark.parametrize("name", ["window_start", "Window_End"])
def test_a_table_that_has_such_a_column_stops_and_names_it(tmp_path: Path, name: str) -> None:
    """Otherwise the rows would be in the windows that the column says."""
    lake = SmallLake(tmp_path, {"events": EVENTS.append(pa.field(name, pa.timestamp("us")))})
    lake.set(events=[row(event) for event in at("10:00")])
    with closing(lake.keep(read(tumbled("ts", "1 hour")))) as kept:
        entry = one(kept, lake)

    assert (entry.state, entry.version) == ("stopped", -1)
    assert f'Ambiguous reference to column name "{name.lower()}"' in entry.reason
