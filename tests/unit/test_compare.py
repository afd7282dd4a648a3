from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.operate.compare import SHOWN, Comparison, KeyDifference, compare

Row = tuple[str | None, ...]


def tables(rows: list[Row], width: int, size: int = 3) -> list[pa.Table]:
    """Small tables, as they come from a stream."""
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [
        pa.table(
            {f"c{i}": pa.array([row[i] for row in part], pa.large_string()) for i in range(width)}
        )
        for part in parts
    ]


def run(
    source: list[Row],
    lake: list[Row],
    folder: Path,
    *,
    key: tuple[int, ...] = (0,),
    buckets: int = 1,
) -> Comparison:
    width = len((source + lake)[0])
    return compare(
        tables(source, width),
        tables(lake, width),
        columns=[f"col{i}" for i in range(width)],
        key=key,
        buckets=buckets,
        scratch=folder,
    )


SAME: list[Row] = [("1", "a"), ("2", None), ("3", "")]


@pytest.mark.parametrize("buckets", [1, 4])
def test_the_same_rows_in_any_order_are_equal(tmp_path: Path, buckets: int) -> None:
    result = run(SAME, SAME[::-1], tmp_path, buckets=buckets)

    assert result.equal
    assert (result.source_rows, result.lake_rows) == (3, 3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("buckets", [1, 4])
def test_each_kind_of_difference_names_its_key(tmp_path: Path, buckets: int) -> None:
    lake: list[Row] = [("1", "a "), ("3", ""), ("4", "x")]
    result = run(SAME, lake, tmp_path, buckets=buckets)

    assert (result.missing, result.extra, result.changed) == (1, 1, 1)
    assert sorted(result.keys, key=lambda found: str(found.key)) == [
        KeyDifference(key=("1",), kind="changed", columns=("col1",)),
        KeyDifference(key=("2",), kind="missing"),
        KeyDifference(key=("4",), kind="extra"),
    ]


def test_null_and_empty_are_different_values(tmp_path: Path) -> None:
    result = run([("1", None)], [("1", "")], tmp_path)

    assert (result.missing, result.extra, result.changed) == (0, 0, 1)


def test_a_row_twice_in_the_lake_is_extra(tmp_path: Path) -> None:
    result = run(SAME, [*SAME, SAME[0], SAME[0]], tmp_path)

    assert (result.missing, result.extra, result.changed) == (0, 2, 0)
    assert result.keys == [KeyDifference(key=("1",), kind="extra")]


def test_without_a_key_copies_are_counted(tmp_path: Path) -> None:
    source: list[Row] = [("a", None), ("a", None), ("b", "x")]
    lake: list[Row] = [("a", None), ("b", "x"), ("b", "x"), ("b", "x")]
    result = run(source, lake, tmp_path, key=())

    assert (result.missing, result.extra, result.changed, result.keys) == (1, 2, 0, [])


def test_a_key_of_two_columns_is_not_their_concatenation(tmp_path: Path) -> None:
    result = run([("a", "bc", "1")], [("ab", "c", "1")], tmp_path, key=(0, 1))

    assert (result.missing, result.extra, result.changed) == (1, 1, 0)


def test_all_differences_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    source: list[Row] = [(str(number), "x") for number in range(3 * SHOWN)]
    result = run(source, [("0", "x")], tmp_path, buckets=4)

    assert result.missing == 3 * SHOWN - 1
    assert len(result.keys) == SHOWN


def test_nothing_is_left_on_disk_after_a_failure(tmp_path: Path) -> None:
    def broken() -> list[pa.Table]:
        message = "source lost"
        raise OSError(message)

    with pytest.raises(OSError, match="source lost"):
        compare(
            tables(SAME, 2),
            (table for _ in [0] for table in broken()),
            columns=["a", "b"],
            key=(0,),
            buckets=2,
            scratch=tmp_path,
        )
    assert list(tmp_path.iterdir()) == []


VALUES = st.sampled_from([None, "", " ", "a", "b"])
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=12)


@given(source=ROWS, lake=ROWS, buckets=st.sampled_from([1, 3]))
def test_it_agrees_with_counting_rows_in_python(
    source: list[Row], lake: list[Row], buckets: int
) -> None:
    with TemporaryDirectory() as folder:
        if not source + lake:
            return
        result = run(source, lake, Path(folder), key=(), buckets=buckets)

    there, here = Counter(source), Counter(lake)
    assert result.missing == (there - here).total()
    assert result.extra == (here - there).total()
    assert result.equal == (there == here)
