"""At every cut windows and late rows are what Python finds in the transactions."""

from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.derive.late.changing import Did, Values, after, hours, in_cuts, time

ALLOWED, LENGTH = 10, 60
TIMES = st.none() | st.integers(0, 40).map(lambda n: n * 10)
CHANGES = st.tuples(st.integers(1, 5), st.booleans(), TIMES, st.integers(0, 3))
Drawn = Sequence[tuple[int, list[tuple[int, bool, int | None, int]]]]
BACK_AGAIN: Drawn = [
    (65, [(1, False, 70, 0), (1, False, 0, 0)]),
    (0, [(1, False, None, 0), (1, False, 0, 0)]),
]
"""A row leaves its final window and comes back: the first of the two events says all."""
LOGS = st.lists(st.tuples(st.integers(0, 300), st.lists(CHANGES, max_size=3)), max_size=9)


def log_of(drawn: Drawn) -> list[Did]:
    """Return transactions in which each id is inserted, then updated or deleted."""
    rows: dict[int, Values] = {}
    found = []
    for committed, changes in drawn:
        done: list[tuple[Values | None, Values | None]] = []
        for number, is_delete, minute, n in changes:
            old = rows.pop(number, None)
            new = None if is_delete and old is not None else (number, n, minute)
            if new is not None:
                rows[number] = new
            done.append((old, new))
        found.append(Did(committed, done))
    return found


@settings(max_examples=12, deadline=None)
@example(drawn=BACK_AGAIN, cuts=1, form="aside")
@given(drawn=LOGS, cuts=st.integers(1, 4), form=st.sampled_from(["keep", "aside", "final"]))
def test_at_every_cut(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, cuts: int, form: str
) -> None:
    did = log_of(drawn)
    policy = "aside" if form == "final" else form
    text = hours(more=f", policy: {policy}", emit="\nemit: final" if form == "final" else "")

    found = in_cuts(tmp_path_factory.mktemp("lake"), text, did, cuts)

    for cut, (seen, late) in enumerate(found, 1):
        upto = len(did) * cut // cuts
        until = watermark(did[:upto])
        wanted: list[tuple[object, ...]] = []
        for start, rows in windows(did[:upto], is_aside=policy == "aside").items():
            is_final = until is not None and start + LENGTH <= until
            row = (time(start), time(start + LENGTH), len(rows), sum(n for _, n, _ in rows))
            if form != "final":
                wanted.append((*row, is_final))
            elif is_final:
                wanted.append(row)
        assert seen == sorted(wanted, key=repr)
        assert len({row[-1] for row in late}) == late_events(did[:upto], is_aside=policy == "aside")


def watermark(did: Sequence[Did]) -> int | None:
    times = [
        new[2]
        for one in did
        for old, new in one.changes
        if old is None and new is not None and new[2] is not None and new[2] <= one.committed + 5
    ]
    return max(times) - ALLOWED if times else None


def windows(did: Sequence[Did], *, is_aside: bool) -> dict[int, list[Values]]:
    """Return the rows of every window: those of now, or of when it became final."""
    found = defaultdict(list)
    for start in range(0, 500, LENGTH):
        ends = (n for n in range(1, len(did) + 1) if is_over(start, watermark(did[:n])))
        upto = next(ends, len(did)) if is_aside else len(did)
        for row in after(did[:upto]).values():
            if row[2] is not None and start <= row[2] < start + LENGTH:
                found[start].append(row)
    return found


def is_over(start: int, until: int | None) -> bool:
    return until is not None and start + LENGTH <= until


def late_events(did: Sequence[Did], *, is_aside: bool) -> int:
    """Return how many events changed a row of a window that was over, or made one.

    Where windows do not change, the first such event of a key in a window says all.
    """
    count, said = 0, set[tuple[int, int]]()
    for number, one in enumerate(did):
        until = watermark(did[:number])
        for change in one.changes:
            places = {
                (row[0], row[2] // LENGTH * LENGTH)
                for row in change
                if row is not None and row[2] is not None
            }
            late = {place for place in places if is_over(place[1], until)}
            count += bool(late - said if is_aside else late)
            said |= late
    return count
