"""Windows are what Python finds, whatever the rows are and however many cuts they come in."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.derive.events import (
    COUNTED,
    EVENTS,
    SESSIONS,
    at,
    at_each_cut,
    moment,
    read,
    row,
)
from tests.unit.derive.small_lake import SmallLake, rows_of


@pytest.mark.parametrize("most", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_the_number_of_cuts_plays_no_part(tmp_path: Path, most: int) -> None:
    """A hundred rows, whose times are in no order, come in one cut, in seven and in many."""
    events = at(*(str(moment("00:00") + timedelta(minutes=i * 37 % 997)) for i in range(100)))
    found = []
    for number in (1, 7, most):
        lake = SmallLake(tmp_path / str(number), {"events": EVENTS})
        ends = [len(events) * (i + 1) // number for i in range(number)]
        *_, last = at_each_cut(lake, SESSIONS.format(time="tz"), *(events[:end] for end in ends))
        found.append(last)

    assert found[0] == found[1] == found[2]
    assert Counter(found[0]) == Counter(
        found_sessions([("a", moment(str(time), "tz")) for _, _, time in events])
    )


TIMES = st.integers(-7, 7).map(lambda n: str(moment("1970-01-01") + n * timedelta(minutes=5)))
CUT = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.none() | TIMES), max_size=8)


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(CUT, min_size=1, max_size=4))
def test_at_every_cut_they_are_what_python_finds(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[list[tuple[str | None, str | None]]]
) -> None:
    lake = SmallLake(tmp_path_factory.mktemp("lake"), {"events": EVENTS})
    form = "hop(shop.events, ts, INTERVAL '10 minutes', INTERVAL '30 minutes')"
    definitions = read(SESSIONS.format(time="ts"), "s"), read(COUNTED.format(form=form), "h")
    with closing(lake.keep(*definitions)) as kept:
        for cut in cuts:
            lake.set(events=[row((i, *pair)) for i, pair in enumerate(cut)])
            sessions, hops = (rows_of(entry) for entry in kept.entries(lake.row()))
            timed = [(who, moment(text)) for who, text in cut if text is not None]

            assert Counter(sessions) == Counter(found_sessions(timed))
            assert dict(hops) == found_hops([time for _, time in timed])


def found_hops(times: Sequence[datetime]) -> dict[datetime, int]:
    starts = [moment("1970-01-01") + i * timedelta(minutes=10) for i in range(-10, 10)]
    length = timedelta(minutes=30)
    counts = {start: sum(start <= time < start + length for time in times) for start in starts}
    return {start: count for start, count in counts.items() if count}


def found_sessions(
    events: Sequence[tuple[str | None, datetime]],
) -> Iterator[tuple[str | None, datetime, datetime, int]]:
    gap = timedelta(minutes=10)
    for key in {who for who, _ in events}:
        times = sorted(time for who, time in events if who == key)
        ends = [i for i, (time, after) in enumerate(pairwise(times), 1) if after - time > gap]
        for first, end in pairwise([0, *ends, len(times)]):
            yield (key, times[first], times[end - 1] + gap, end - first)
