"""Rows that were removed and added again are struck out in pairs, each as often as it is there."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.net import keep_net, narrow_net
from cdc.lake.changed.changed_rows import ChangedRows

WHOLE: Final = [None, 1, 2]
KINDS: Final[dict[pa.DataType, list[Any]]] = {
    pa.int64(): WHOLE,
    pa.string(): [None, "", "1", "N"],
    pa.float64(): [None, 0.0, -0.0, 1.5, float("nan")],
    pa.list_(pa.float64()): [None, [], [0.0], [-0.0, None]],
}


def net(
    kind: pa.DataType, removed: Sequence[Any], added: Sequence[Any]
) -> tuple[Counter[str], ...]:
    schema = pa.schema([("n", pa.int64()), ("x", kind)])
    before, after = (
        pa.Table.from_pylist([{"n": 1, "x": x} for x in side], schema) for side in (removed, added)
    )
    found = ChangedRows(removed=before, added=after)
    with calculator(64) as database:
        keep_net(database, found, "gone", "new")
        rows = (database.rows(f"SELECT x FROM {name}").column("x") for name in ("gone", "new"))
        return tuple(Counter(map(repr, column.to_pylist())) for column in rows)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(data=st.data())
def test_what_is_in_one_of_the_two_only(kind: pa.DataType, data: st.DataObject) -> None:
    sides = st.lists(st.sampled_from(KINDS[kind]), max_size=6)
    removed, added = data.draw(sides), data.draw(sides)

    counted = [Counter(map(repr, side)) for side in (removed, added)]

    assert net(kind, removed, added) == (counted[0] - counted[1], counted[1] - counted[0])


def narrowed(before: Sequence[Any], after: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return what changes of (n, x) are in the column x; n tells all rows from each other."""
    sides = (
        pa.table({"n": range(first, first + len(side)), "x": pa.array(side, pa.float64())})
        for first, side in ((0, before), (100, after))
    )
    found = ChangedRows(**dict(zip(("removed", "added"), sides, strict=True)))
    with calculator(64) as database:
        keep_net(database, found, "gone", "new")
        narrow_net(database, ["x"], ("gone", "new"), ("g", "n"), are_all=False)
        return tuple(
            database.rows(f"SELECT x FROM {name}").column("x").to_pylist() for name in "gn"
        )


@given(data=st.data())
def test_a_part_of_the_columns_has_the_same_difference(data: st.DataObject) -> None:
    sides = st.lists(st.sampled_from(KINDS[pa.float64()]), max_size=6)
    before, after = data.draw(sides), data.draw(sides)

    gone, new = (Counter(map(repr, side)) for side in narrowed(before, after))

    counted = [Counter(map(repr, side)) for side in (before, after)]
    assert (gone - new, new - gone) == (counted[0] - counted[1], counted[1] - counted[0])


def test_where_most_rows_differ_in_other_columns_alone_they_are_no_changes() -> None:
    assert narrowed([1.5, 0.0, 2.0], [1.5, -0.0, 2.0]) == ([0.0], [-0.0])


def test_where_few_do_they_stay_because_that_is_cheaper() -> None:
    gone, new = narrowed([1.5, 2.0, 3.0, 4.0], [1.5])

    assert (sorted(gone), new) == ([1.5, 2.0, 3.0, 4.0], [1.5])
