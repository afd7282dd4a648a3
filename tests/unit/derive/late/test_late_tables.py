"""Late rows and final windows are the same in any number of cuts, and after a rebuild."""

from pathlib import Path

import pytest

from tests.unit.derive.late.changing import (
    Did,
    Values,
    hours,
    in_cuts,
    time,
)
from tests.unit.derive.late.logs import at

FIRST: Values = (1, 10, at("12:10"))
LATE: Values = (2, 5, at("11:45"))
NOW = at("12:10")


def did(*rows: Values, committed: int = NOW) -> Did:
    return Did(committed, [(None, row) for row in rows])


def window(start: str, rows: int, total: int, *, final: bool | None = None) -> tuple[object, ...]:
    begin = at(start)
    shown = () if final is None else (final,)
    return (time(begin), time(begin + 60), rows, total, *shown)


@pytest.mark.parametrize("cuts", [1, 2, 4])
def test_a_late_row_is_counted_and_noted(tmp_path: Path, cuts: int) -> None:
    """Hazard 11, keep: its window is corrected."""
    heartbeats = [Did(NOW), Did(NOW)]

    seen, late = in_cuts(tmp_path, hours(), [did(FIRST), did(LATE), *heartbeats], cuts)[-1]

    assert seen == [window("11:00", 1, 5, final=True), window("12:00", 1, 10, final=False)]
    times = time(at("11:00")), time(at("12:00")), time(at("12:00"))
    assert late == [(2, 5, time(at("11:45")), "c", "added", *times, 1, 1000)]


ASIDE = ", policy: aside"
FINAL = "\nemit: final"
in_any_cuts = pytest.mark.parametrize("cuts", [1, 2, 4, 7])


def gone(row: Values) -> Did:
    return Did(NOW, [(row, None)])


def became(old: Values, new: Values) -> Did:
    return Did(NOW, [(old, new)])


@in_any_cuts
def test_a_late_row_is_put_aside(tmp_path: Path, cuts: int) -> None:
    """Hazard 11, aside: it is in no window."""
    more = [Did(NOW)] * 5

    seen, late = in_cuts(tmp_path, hours(more=ASIDE), [did(FIRST), did(LATE), *more], cuts)[-1]

    assert seen == [window("12:00", 1, 10, final=False)]
    assert [row[:5] for row in late] == [(2, 5, time(at("11:45")), "c", "left out")]


@in_any_cuts
@pytest.mark.parametrize("policy", ["keep", "aside"])
def test_rows_of_final_windows_change(tmp_path: Path, cuts: int, policy: str) -> None:
    """Hazard 13: deleted, updated, moved out of a final window and into one."""
    rows: list[Values] = [(number, 1, at("10:30")) for number in range(1, 5)]
    open_row: Values = (5, 1, at("12:00"))
    log = [
        did(*rows, open_row),
        did((6, 10, at("12:10"))),
        gone(rows[0]),
        became(rows[1], (2, 7, at("10:45"))),
        became(rows[2], (3, 1, at("12:05"))),
        became(open_row, (5, 1, at("10:10"))),
        gone((2, 7, at("10:45"))),
    ]

    seen, late = in_cuts(tmp_path, hours(more=f", policy: {policy}"), log, cuts)[-1]

    final = window("10:00", *((2, 2) if policy == "keep" else (4, 4)), final=True)
    assert seen == [final, window("12:00", 2, 11, final=False)]
    effects = sorted((row[0], row[3], row[4]) for row in late)
    assert (
        effects
        == {
            "keep": [
                (1, "d", "removed"),
                (2, "d", "removed"),
                (2, "u", "added"),
                (2, "u", "removed"),
                (3, "u", "removed"),
                (5, "u", "added"),
            ],
            "aside": [
                (1, "d", "kept"),
                (2, "u", "kept"),
                (2, "u", "left out"),
                (3, "u", "kept"),
                (5, "u", "left out"),
            ],
        }[policy]
    )


@in_any_cuts
def test_only_final_windows_are_emitted(tmp_path: Path, cuts: int) -> None:
    log = [
        did((1, 1, at("10:30"))),
        did((2, 1, at("12:09"))),
        did((3, 1, at("12:10"))),
        did((4, 1, at("10:40"))),
        gone((1, 1, at("10:30"))),
        Did(NOW),
        Did(NOW),
    ]

    text = hours(more=ASIDE, emit=FINAL)
    found = in_cuts(tmp_path, text, log, cuts)

    assert found[-1][0] == [window("10:00", 1, 1)]
    if cuts == len(log):
        assert [seen for seen, _ in found[:3]] == [[], [window("10:00", 1, 1)], found[-1][0]]


@in_any_cuts
def test_heartbeats_make_windows_final(tmp_path: Path, cuts: int) -> None:
    """Hazard 15: cuts without rows."""
    beats = [Did(at("12:00") + minute) for minute in (5, 10, 25, 29, 30, 30)]
    text = hours(more=", idle: 20 minutes")

    found = in_cuts(tmp_path, text, [did((1, 1, at("11:59")), committed=719), *beats], cuts)

    assert found[-1][0] == [window("11:00", 1, 1, final=True)]
    if cuts == 1 + len(beats):
        assert [seen[0][-1] for seen, _ in found] == [False] * 5 + [True] * 2


@in_any_cuts
def test_neither_the_future_nor_no_time_makes_late(tmp_path: Path, cuts: int) -> None:
    """Hazards 14 and 20."""
    log = [did((1, 1, NOW + 120)), did((2, 1, None)), *(did((n, 1, 600)) for n in range(3, 8))]

    seen, late = in_cuts(tmp_path, hours(more=ASIDE), log, cuts)[-1]

    assert seen == [window("10:00", 5, 5, final=False), window("14:00", 1, 1, final=False)]
    assert late == []
