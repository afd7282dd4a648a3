"""Rows that were removed and added again are struck out in pairs, each as often as it is there."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.net import keep_net
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
