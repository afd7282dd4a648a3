"""Single rows of a data file are the ones that a whole reading of it has at these places."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from cdc.apply.local.arrow import arrow_type
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.stored_rows import StoredColumn, row_file
from cdc.lake.files import row_file as row_file_module
from cdc.lake.key_index.data_file import DataFile

ROWS, GROUP = 50, 7
COLUMNS = [
    StoredColumn("c-1", "bigint"),
    StoredColumn("c-2", "string"),
    StoredColumn("c-3", "array<string>"),
    StoredColumn("c-4", "decimal(12,4)"),
    StoredColumn("c-9", "array<int>"),
]
"""The first and the fourth were widened since, and the last one was added."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[fs.FileSystem, DataFile, pa.Table]:
    """A file of several row groups: its directory, the file, and all of its rows."""
    folder = tmp_path_factory.mktemp("table")
    numbers = list(range(ROWS))
    rows = pa.table(
        {
            "c-0": pa.array([f"{'x' * 1000}{n}" for n in numbers]),
            "c-1": pa.array(numbers, pa.int32()),
            "c-2": pa.array([None if n % 3 == 0 else f"text {n}" for n in numbers]),
            "c-3": pa.array([[f"{n}", None] * (n % 3) for n in numbers]),
            "c-4": pa.array(numbers).cast(pa.decimal128(20, 0)).cast(pa.decimal128(10, 2)),
        }
    )
    pq.write_table(rows, folder / "f", row_group_size=GROUP)
    size = (folder / "f").stat().st_size
    return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem()), DataFile("f", size, ROWS), rows


Written = tuple[fs.FileSystem, DataFile, pa.Table]


@given(some=st.sets(st.integers(0, ROWS - 1)), batch=st.integers(1, 2000))
def test_rows_are_those_of_the_whole_file(written: Written, some: set[int], batch: int) -> None:
    files, file, rows = written
    asked = np.array(sorted(some), np.int64)

    with pytest.MonkeyPatch.context() as patch, row_file(files, file, COLUMNS) as opened:
        patch.setattr(row_file_module, "_BATCH_BYTES", batch)
        found = opened.read(asked)

    whole = rows.take(pa.array(asked))
    for column, values in zip(COLUMNS, found, strict=True):
        none: list[Any] = [None] * len(some)
        held = column.physical in rows.column_names
        assert values.to_pylist() == (whole[column.physical].to_pylist() if held else none)
    assert [values.type for values in found] == [arrow_type(c.type) for c in COLUMNS]


def test_only_the_row_groups_and_columns_that_are_needed_cost_something(written: Written) -> None:
    files, file, _ = written

    with row_file(files, file, COLUMNS[:3]) as opened:
        one, two = (opened.cost(np.array(rows)) for rows in ([0, GROUP - 1], [0, GROUP]))
        none = opened.cost(np.array([], np.int64))

    assert none == 0 < one < two < 1000 * GROUP


@pytest.mark.parametrize("change", ["gone", "shorter", "other", "rows"])
def test_a_file_that_is_not_the_one_of_the_log_is_left_to_spark(
    written: Written, tmp_path: Path, change: str
) -> None:
    _, file, rows = written
    pq.write_table(rows, tmp_path / "f", row_group_size=GROUP)
    data = (tmp_path / "f").read_bytes()
    if change == "gone":
        (tmp_path / "f").unlink()
    elif change == "shorter":
        (tmp_path / "f").write_bytes(data[:-20])
    elif change == "other":
        (tmp_path / "f").write_bytes(b"x" * len(data))
    else:
        file = DataFile("f", file.size, ROWS + 1)
    files = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    with pytest.raises(NotLocalError, match="data file f"), row_file(files, file, COLUMNS):
        pass
