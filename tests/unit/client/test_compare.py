import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.client.verify.compare import BUCKET_BYTES, SHOWN, Comparison, KeyDifference, compare

Row = tuple[str | None, ...]


def tables(rows: list[Row], width: int, size: int = 3) -> list[pa.Table]:
    """Yield the rows in small tables, as a stream would."""
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
    most_bytes: int = BUCKET_BYTES,
) -> Comparison:
    width = len((source + lake)[0])
    return compare(
        tables(source, width),
        tables(lake, width),
        columns=[f"col{i}" for i in range(width)],
        key=key,
        buckets=buckets,
        scratch=folder,
        most_bytes=most_bytes,
    )


SAME: list[Row] = [("1", "a"), ("2", None), ("3", "")]


@pytest.mark.parametrize("buckets", [1, 4])
def test_the_same_rows_in_any_order_are_equal(tmp_path: Path, buckets: int) -> None:
    result = run(SAME, SAME[::-1], tmp_path, buckets=buckets)

    assert result.equal
    assert (result.source_rows, result.lake_rows) == (3, 3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("buckets", "most_bytes"), [(1, BUCKET_BYTES), (4, BUCKET_BYTES), (1, 1)])
def test_each_kind_of_difference_names_its_key(
    tmp_path: Path, buckets: int, most_bytes: int
) -> None:
    lake: list[Row] = [("1", "a "), ("3", ""), ("4", "x")]
    result = run(SAME, lake, tmp_path, buckets=buckets, most_bytes=most_bytes)

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


@given(
    source=ROWS,
    lake=ROWS,
    buckets=st.sampled_from([1, 3]),
    most_bytes=st.sampled_from([1, 100, 1 << 20]),
)
def test_the_comparison_agrees_with_counting_rows_in_python(
    source: list[Row], lake: list[Row], buckets: int, most_bytes: int
) -> None:
    """The counts agree for buckets that stay too large, and that dealing cannot make smaller."""
    with TemporaryDirectory() as folder:
        if not source + lake:
            return
        result = run(source, lake, Path(folder), key=(), buckets=buckets, most_bytes=most_bytes)
        assert list(Path(folder).iterdir()) == []

    there, here = Counter(source), Counter(lake)
    assert result.missing == (there - here).total()
    assert result.extra == (here - there).total()
    assert result.equal == (there == here)


MANY = 3000
LARGE = """
import sys
from pathlib import Path
import pyarrow as pa
from cdc.client.verify.compare import compare
def rows(number):
    for start in range(0, number, 1000):
        ids = [str(n) for n in range(start, start + 1000)]
        texts = ["x" * 1000] * 1000
        columns = {"c0": ids, "c1": texts}
        yield pa.table({n: pa.array(c, pa.large_string()) for n, c in columns.items()})
keyed = sys.argv[2] == "keyed"
found = compare(
    (table if keyed else table.drop(["c0"]) for table in rows(64_000)),
    iter(()),
    columns=["id", "text"] if keyed else ["text"],
    key=(0,) if keyed else (),
    buckets=1,
    scratch=Path(sys.argv[1]),
    **({"most_bytes": 2 << 20} if len(sys.argv) == 3 else {}),
)
print(found.missing, pa.default_memory_pool().max_memory() >> 20)
"""
LIMITED = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
import pyarrow as pa
from cdc.client.verify.compare import compare
def rows(first):
    for start in range(0, 40_000, 4_000):
        ids = [str(n + first) for n in range(start, start + 4_000)]
        yield pa.table({"c0": pa.array(ids, pa.large_string())})
found = compare(
    rows(0), rows(1), columns=["id"], key=(0,), buckets=int(sys.argv[2]), scratch=Path(sys.argv[1])
)
print(found.source_rows, found.missing, found.extra, found.changed)
"""


def test_a_comparison_opens_few_files_whatever_the_table_s_size(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), str(MANY)],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "40000 1 1 0\n"), done.stderr[-400:]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["keyed", "copies"])
def test_a_comparison_needs_little_memory_even_for_a_table_that_the_lake_lacks(
    tmp_path: Path, kind: str
) -> None:
    """Compare 64 MB of rows, or of copies of one row, in buckets of 2 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path), kind],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    missing, megabytes = map(int, done.stdout.split())
    assert missing == 64_000
    assert megabytes < 32


def test_nothing_stays_open_after_a_failure(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield from tables(SAME, 2)
        message = "source lost"
        raise OSError(message)

    before = psutil.Process().num_fds()
    with pytest.raises(OSError, match="source lost") as caught:
        compare(
            tables(SAME, 2), broken(), columns=["a", "b"], key=(0,), buckets=2, scratch=tmp_path
        )
    assert caught.value.__traceback__ is not None  # the failure's frames still hold their objects
    assert psutil.Process().num_fds() == before
