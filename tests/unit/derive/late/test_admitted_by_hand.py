"""With admissions every window is what Python counts, whatever the number of cuts.

A key has in a window what the table had when the window became final, or when the key was last
admitted: so the count knows neither late rows nor what was noted of them.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.derived_requests import rebuilds
from tests.unit.derive.late.changing import (
    Changing,
    Did,
    Values,
    after,
    defined,
    hours,
    time,
)
from tests.unit.derive.late.test_hops_aside import HOP, SLIDE
from tests.unit.derive.late.test_late_tables_by_hand import (
    BACK_AGAIN,
    LENGTH,
    LOGS,
    Drawn,
    is_over,
    log_of,
    watermark,
)
from tests.unit.derive.small_lake import rows_of

ASIDE = hours(more=", policy: aside")
HOPS = hours(HOP, more=", policy: aside")
Asked = Mapping[int, set[int]]
"""After how many transactions which ids were admitted."""


def in_cuts(
    folder: Path, did: Sequence[Did], asked: Asked, number: int, text: str = ASIDE
) -> dict[int, list[DerivedEntry]]:
    """Return the tables by how many transactions their cut has; a rebuild gives the same.

    There are so many cuts, and one more before each admission.
    """
    ends = {len(did) * cut // number for cut in range(1, number + 1)}
    found: dict[int, list[DerivedEntry]] = {}
    changing = Changing(folder, did)
    with closing(changing.keep(text)) as kept:
        for upto in sorted(ends | asked.keys()):
            found[upto] = changing.cut(kept, upto)
            for key in sorted(asked.get(upto, ())):
                changing.admit(f"id = {key}", seen=changing.lake.cut)
        found[len(did)] = changing.cut(kept, len(did))
        for one in defined(text):
            rebuilds(folder).ask(one.table)
        again = changing.cut(kept, len(did))
    assert list(map(rows_of, again)) == list(map(rows_of, found[len(did)]))
    return found


def counted(
    did: Sequence[Did], asked: Asked, upto: int, slide: int = LENGTH
) -> list[tuple[object, ...]]:
    """Return the rows of the table when the cut has so many transactions, and all admissions."""
    until, found = watermark(did[:upto]), []
    for start in range(slide - LENGTH, 500, slide):
        closed = (n for n in range(1, upto + 1) if is_over(start, watermark(did[:n])))
        final = next(closed, upto)
        rows = []
        for key in range(60):
            admitted = [n for n, keys in asked.items() if key in keys and n <= upto]
            row = after(did[: max([final, *admitted])]).get(key)
            if row is not None and row[2] is not None and start <= row[2] < start + LENGTH:
                rows.append(row)
        if rows:
            total = sum(n for _, n, _ in rows)
            shown = (time(start), time(start + LENGTH), len(rows), total)
            found.append((*shown, is_over(start, until)))
    return sorted(found, key=repr)


@settings(max_examples=12, deadline=None)
@example(drawn=BACK_AGAIN, cuts=2, asked={2: {1}}, slide=LENGTH)
@given(
    drawn=LOGS,
    cuts=st.integers(1, 3),
    asked=st.dictionaries(st.integers(1, 9), st.sets(st.integers(1, 5), min_size=1), max_size=3),
    slide=st.sampled_from([LENGTH, SLIDE]),
)
def test_at_the_end(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, cuts: int, asked: Asked, slide: int
) -> None:
    did = log_of(drawn)
    mine = {n: keys for n, keys in asked.items() if n <= len(did)}

    text = ASIDE if slide == LENGTH else HOPS
    found = in_cuts(tmp_path_factory.mktemp("lake"), did, mine, cuts, text)

    assert rows_of(found[len(did)][1]) == counted(did, mine, len(did), slide)


@pytest.mark.parametrize("most", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_one_seven_and_many_cuts_are_the_same(tmp_path: Path, most: int) -> None:
    """Of a log whose times go back and forth, and whose rows are moved and deleted."""
    rows: list[Values] = [(number, number, number * 37 % 400) for number in range(40)]
    did = [Did(row[2] or 0, [(None, row)]) for row in rows]
    did += [
        Did(400, [(row, None if row[0] % 3 == 1 else (row[0], 1, 399 - (row[2] or 0)))])
        for row in rows
    ]
    asked = {35: {5, 20, 21}, 55: {2, 3, 20}, 78: {3, 30, 31, 32}}

    each = [in_cuts(tmp_path / str(n), did, asked, n) for n in (1, 7, most)]

    late = [[_without_cut(row) for row in rows_of(one[len(did)][0])] for one in each]
    assert late[0] == late[1] == late[2]
    assert {row[4] for row in late[0]} == {"left out", "kept", "admitted"}
    for found in each:
        for upto in [*sorted(found)[::3], len(did)]:
            done = {n: keys for n, keys in asked.items() if n < upto}
            assert rows_of(found[upto][1]) == counted(did, done, upto)


def _without_cut(row: tuple[object, ...]) -> tuple[object, ...]:
    """Leave out the cut, and when it was asked for."""
    return (*row[:8], *row[9:11], row[12])
