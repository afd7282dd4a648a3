"""A row may be late for some of its windows and in time for others: only the late ones do without.

Windows of an hour begin every twenty minutes.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.derive.late.changing import (
    Changing,
    Did,
    Values,
    after,
    alike,
    back_and_forth,
    hours,
    in_cuts,
    time,
)
from tests.unit.derive.late.logs import at
from tests.unit.derive.late.test_late_tables_by_hand import (
    LENGTH,
    LOGS,
    Drawn,
    is_over,
    log_of,
    watermark,
)
from tests.unit.derive.small_lake import rows_of

HOP = "hop(shop.events, ts, INTERVAL '20 minutes', INTERVAL '1 hour')"
SLIDE = 20
NOW = at("12:10")
TEXT = hours(HOP, more=", policy: aside")
EMITTED = hours(HOP, more=", policy: aside", emit="\nemit: final")
in_any_cuts = pytest.mark.parametrize("cuts", [1, 2, 4])
FIRST: Values = (1, 10, at("12:10"))
LATE: Values = (2, 5, at("11:45"))


def did(*changes: tuple[Values | None, Values | None]) -> Did:
    return Did(NOW, changes)


def totals(seen: Sequence[tuple[object, ...]]) -> dict[str, int]:
    """Return the total of each window by its start."""
    return {f"{row[0]:%H:%M}": int(str(row[3])) for row in seen}


@in_any_cuts
def test_a_row_is_put_aside_in_the_windows_that_are_over(tmp_path: Path, cuts: int) -> None:
    log = [did((None, FIRST)), did((None, LATE)), Did(NOW), Did(NOW)]

    seen, late = in_cuts(tmp_path, TEXT, log, cuts)[-1]

    assert totals(seen) == {"11:20": 15, "11:40": 15, "12:00": 10}
    assert [(row[0], row[3], row[4], row[5], row[6]) for row in late] == [
        (2, "c", "left out", time(at("11:00")), time(at("12:00")))
    ]


@in_any_cuts
def test_a_row_that_is_late_everywhere_is_noted_for_each_window(tmp_path: Path, cuts: int) -> None:
    """It moves by a window, and goes: each window has what its first late event says."""
    row, moved = (2, 5, at("10:45")), (2, 7, at("11:05"))
    log = [did((None, row), (None, FIRST)), did((row, moved)), did((moved, None)), Did(NOW)]

    seen, late = in_cuts(tmp_path, TEXT, log, cuts)[-1]

    final = {"10:00": 5, "10:20": 5, "10:40": 5}
    assert totals(seen) == {**final, "11:20": 10, "11:40": 10, "12:00": 10}
    assert sorted((f"{row[5]:%H:%M}", row[4], row[1]) for row in late) == [
        ("10:00", "kept", 5),
        ("10:20", "kept", 5),
        ("10:20", "left out", 7),
        ("10:40", "kept", 5),
        ("10:40", "left out", 7),
        ("11:00", "left out", 7),
    ]


def test_one_of_its_windows_is_admitted(tmp_path: Path) -> None:
    late = (2, 5, at("11:25"))
    changing = Changing(tmp_path, [did((None, FIRST)), did((None, late))])
    with closing(changing.keep(TEXT)) as kept:
        before = changing.cut(kept, 2)[1]
        changing.admit("_window_start = TIMESTAMPTZ '1970-01-01 10:40:00+00'", seen=1)
        after_it = changing.cut(kept, 2)[1]

    assert totals(rows_of(before)) == {"11:20": 15, "11:40": 10, "12:00": 10}
    assert totals(rows_of(after_it)) == {"10:40": 5, "11:20": 15, "11:40": 10, "12:00": 10}


@settings(max_examples=10, deadline=None)
@example(
    drawn=[(65, [(1, False, 70, 0), (1, False, 0, 0)]), (0, [(1, False, 10, 3)])], cuts=2, emit=0
)
@given(drawn=LOGS, cuts=st.integers(1, 4), emit=st.integers(0, 1))
def test_at_every_cut_windows_are_what_python_counts(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, cuts: int, emit: int
) -> None:
    log = log_of(drawn)

    found = in_cuts(tmp_path_factory.mktemp("lake"), (TEXT, EMITTED)[emit], log, cuts)

    for cut, (seen, _) in enumerate(found, 1):
        assert seen == counted(log[: len(log) * cut // cuts], is_emitted=bool(emit))


@pytest.mark.parametrize("most", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_one_seven_and_many_cuts_are_the_same(tmp_path: Path, most: int) -> None:
    log = back_and_forth(40)

    assert alike(tmp_path, TEXT, log, most)[0] == counted(log, is_emitted=False)


def counted(log: Sequence[Did], *, is_emitted: bool) -> list[tuple[object, ...]]:
    """Return the windows: of each the rows of now, or of when it became final."""
    until, found = watermark(log), defaultdict[int, list[int]](list)
    for start in range(SLIDE - LENGTH, 500, SLIDE):
        ends = (n for n in range(1, len(log) + 1) if is_over(start, watermark(log[:n])))
        for row in after(log[: next(ends, len(log))]).values():
            if row[2] is not None and start <= row[2] < start + LENGTH:
                found[start].append(row[1])
    shown: list[tuple[object, ...]] = []
    for start, numbers in found.items():
        window = (time(start), time(start + LENGTH), len(numbers), sum(numbers))
        is_final = is_over(start, until)
        if not is_emitted or is_final:
            shown.append(window if is_emitted else (*window, is_final))
    return sorted(shown, key=repr)
