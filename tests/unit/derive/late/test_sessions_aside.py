"""Sessions do without late rows: a row is late once the gap behind its own time is over.

A session ends half an hour after its last row.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
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
from tests.unit.derive.late.test_admitted_by_hand import Asked
from tests.unit.derive.late.test_admitted_by_hand import in_cuts as in_cuts_with_admissions
from tests.unit.derive.late.test_late_tables_by_hand import LOGS, Drawn, log_of, watermark
from tests.unit.derive.small_lake import rows_of

GAP = 30
SESSIONS = "sessions(shop.events, ts, INTERVAL '30 minutes')"
TEXT = hours(SESSIONS, more=", policy: aside")
EMITTED = hours(SESSIONS, more=", policy: aside", emit="\nemit: final")
OF_EACH = """\
/* ---
late: {column: ts, allowed: 10 minutes, policy: aside}
--- */
SELECT w.n, w.window_start, w.window_end, count(*) AS rows
FROM sessions(shop.events, ts, INTERVAL '30 minutes', n) AS w
GROUP BY w.n, w.window_start, w.window_end"""
NOW = at("12:10")
FIRST: Values = (1, 10, at("10:00"))
NEWEST: Values = (9, 1, NOW)
in_any_cuts = pytest.mark.parametrize("cuts", [1, 2, 4])


def did(*changes: tuple[Values | None, Values | None]) -> Did:
    return Did(NOW, changes)


def sessions(seen: Sequence[tuple[object, ...]]) -> list[tuple[str, str, int, bool]]:
    """Return the start, the end, the total of each session, and whether it is final."""
    return [(f"{one[0]:%H:%M}", f"{one[1]:%H:%M}", int(str(one[3])), bool(one[4])) for one in seen]


@in_any_cuts
def test_a_late_row_joins_no_session(tmp_path: Path, cuts: int) -> None:
    late = (2, 5, at("10:20"))
    log = [did((None, FIRST)), did((None, NEWEST)), did((None, late)), Did(NOW)]

    seen, noted = in_cuts(tmp_path, TEXT, log, cuts)[-1]

    assert sessions(seen) == [("10:00", "10:30", 10, True), ("12:10", "12:40", 1, False)]
    assert [(row[0], row[3], row[4], row[5], row[6]) for row in noted] == [
        (2, "c", "left out", time(at("10:20")), time(at("10:50")))
    ]


@in_any_cuts
def test_a_final_session_keeps_a_row_that_moves_or_goes(tmp_path: Path, cuts: int) -> None:
    second, moved = (2, 5, at("10:20")), (2, 7, at("12:00"))
    log = [did((None, FIRST), (None, second)), did((None, NEWEST)), did((second, moved))]
    log.append(did((FIRST, None)))

    seen, noted = in_cuts(tmp_path, TEXT, log, cuts)[-1]

    assert sessions(seen) == [("10:00", "10:50", 15, True), ("12:00", "12:40", 8, False)]
    assert [(row[0], row[4]) for row in noted] == [(1, "kept"), (2, "kept")]


@in_any_cuts
def test_a_kept_row_stays_in_the_sessions_of_its_key(tmp_path: Path, cuts: int) -> None:
    other = (1, 11, at("10:00"))
    log = [did((None, FIRST)), did((None, NEWEST)), did((FIRST, other)), Did(NOW)]

    seen, _ = in_cuts(tmp_path, OF_EACH, log, cuts)[-1]

    assert [(row[0], row[3]) for row in seen] == [(1, 1), (10, 1)]


def test_an_admitted_row_joins_two_final_sessions(tmp_path: Path) -> None:
    second, late = (2, 5, at("10:50")), (3, 7, at("10:25"))
    log = [did((None, FIRST), (None, second)), did((None, NEWEST)), did((None, late))]
    changing = Changing(tmp_path, log)
    with closing(changing.keep(TEXT)) as kept:
        before = changing.cut(kept, 3)[1]
        changing.admit("id = 3", seen=1)
        after_it = changing.cut(kept, 3)[1]

    assert sessions(rows_of(before))[:2] == [
        ("10:00", "10:30", 10, True),
        ("10:50", "11:20", 5, True),
    ]
    assert sessions(rows_of(after_it))[:1] == [("10:00", "11:20", 22, True)]


@settings(max_examples=12, deadline=None)
@example(
    drawn=[(65, [(1, False, 70, 0), (1, False, 0, 0)]), (0, [(1, False, 10, 3)])], cuts=2, emit=0
)
@given(drawn=LOGS, cuts=st.integers(1, 4), emit=st.integers(0, 1))
def test_at_every_cut_sessions_are_what_python_finds(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, cuts: int, emit: int
) -> None:
    log = log_of(drawn)

    found = in_cuts(tmp_path_factory.mktemp("lake"), (TEXT, EMITTED)[emit], log, cuts)

    for cut, (seen, _) in enumerate(found, 1):
        assert seen == expected(log[: len(log) * cut // cuts], is_emitted=bool(emit))


@settings(max_examples=8, deadline=None)
@example(drawn=[(65, [(1, False, 0, 0)]), (65, [(2, False, 50, 0)]), (65, [(3, False, 20, 0)])])
@given(drawn=LOGS)
def test_what_is_emitted_stays(tmp_path_factory: pytest.TempPathFactory, drawn: Drawn) -> None:
    log = log_of(drawn)

    found = in_cuts(tmp_path_factory.mktemp("lake"), EMITTED, log, max(1, len(log)))

    for (before, _), (then, _) in pairwise(found):
        assert set(before) <= set(then)


@settings(max_examples=10, deadline=None)
@example(drawn=[(65, [(1, False, 70, 0), (2, False, 0, 1)])], cuts=2, asked={1: {2}})
@given(
    drawn=LOGS,
    cuts=st.integers(1, 3),
    asked=st.dictionaries(st.integers(1, 9), st.sets(st.integers(1, 5), min_size=1), max_size=3),
)
def test_with_admissions(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, cuts: int, asked: Asked
) -> None:
    log = log_of(drawn)
    mine = {n: keys for n, keys in asked.items() if n <= len(log)}

    found = in_cuts_with_admissions(tmp_path_factory.mktemp("lake"), log, mine, cuts, TEXT)

    assert rows_of(found[len(log)][1]) == expected(log, mine, is_emitted=False)


@pytest.mark.parametrize("most", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_one_seven_and_many_cuts_are_the_same(tmp_path: Path, most: int) -> None:
    log = back_and_forth(40)

    assert alike(tmp_path, TEXT, log, most)[0] == expected(log, is_emitted=False)


def expected(
    log: Sequence[Did], asked: Mapping[int, set[int]] | None = None, *, is_emitted: bool
) -> list[tuple[object, ...]]:
    """Return the sessions of the rows that count."""
    until, shown = watermark(log), list[tuple[object, ...]]()
    for rows in split(sorted(counting(log, asked or {}))):
        start, end = rows[0][0], rows[-1][0] + GAP
        session = (time(start), time(end), len(rows), sum(n for _, n in rows))
        is_final = until is not None and end + GAP <= until
        if not is_emitted or is_final:
            shown.append(session if is_emitted else (*session, is_final))
    return sorted(shown, key=repr)


def counting(log: Sequence[Did], asked: Mapping[int, set[int]]) -> Iterator[tuple[int, int]]:
    """Yield the time and the number of each row that counts.

    At a time a key has the row of now, or the one it had when the gap behind that time was over,
    or when the key was admitted last.
    """
    changes = [change for one in log for change in one.changes]
    places = {
        (row[0], row[2]) for change in changes for row in change if row and row[2] is not None
    }
    for key, minute in places:
        ends = (n for n in range(1, len(log) + 1) if is_over(minute, watermark(log[:n])))
        admitted = [n for n, keys in asked.items() if key in keys]
        row = after(log[: max([next(ends, len(log)), *admitted])]).get(key)
        if row is not None and row[2] == minute:
            yield minute, row[1]


def is_over(minute: int, until: int | None) -> bool:
    return until is not None and minute + GAP <= until


def split(rows: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return rows in order of time, session by session."""
    found: list[list[tuple[int, int]]] = []
    for row in rows:
        if found and row[0] - found[-1][-1][0] <= GAP:
            found[-1].append(row)
        else:
            found.append([row])
    return found
