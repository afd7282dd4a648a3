"""What a look-up refuses, and whom it believes."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.key_index import KeyIndex
from cdc.lake.key_index.places import LiveFile, Places
from cdc.lake.key_index.refused import IndexRefusedError
from tests.unit.lake.key_index.lake_table import LakeTable, as_list, batch, key_of, write

KEY = key_of("bigint")
TEXT = key_of("string")


def numbered(table: LakeTable, *keys: int) -> list[tuple[str, int] | None]:
    return table.look_up([(key,) for key in keys])


@pytest.fixture(params=[0, 1 << 30], ids=["mapped", "in memory"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    return LakeTable(tmp_path, KEY, request.param)


def test_a_row_is_counted_from_the_first_of_the_file(table: LakeTable) -> None:
    table.append([(30,), (10,), (20,)])

    assert numbered(table, 10, 20, 30) == [("part-0.parquet", row) for row in (1, 2, 0)]


def test_rows_by_file_are_what_a_deletion_vector_gets(table: LakeTable) -> None:
    table.append([(30,), (10,), (20,)])
    table.append([(5,)])
    table.append([(6,)])
    places = table.index.look_up(batch(KEY, [(30,), (20,), (6,), (20,), (9,)]), table.live())

    rows = {path: rows.tolist() for path, rows in places.rows_by_file().items()}
    assert rows == {"part-0.parquet": [0, 2], "part-2.parquet": [0]}


def test_a_key_may_have_many_dead_rows_in_a_file_and_one_live_row(table: LakeTable) -> None:
    table.append([(1,), (7,), (7,), (7,), (9,)])
    table.deleted["part-0.parquet"] = {1, 3}

    assert numbered(table, 7, 9) == [("part-0.parquet", 2), ("part-0.parquet", 4)]


@pytest.mark.parametrize("deleted", [{1}, {3}, set()])
def test_two_live_rows_in_a_file_are_refused(table: LakeTable, deleted: set[int]) -> None:
    table.append([(1,), (7,), (7,), (7,), (9,)])
    table.deleted["part-0.parquet"] = deleted

    assert numbered(table, 1, 9) == [("part-0.parquet", 0), ("part-0.parquet", 4)]
    with pytest.raises(IndexRefusedError, match=r"part-0\.parquet has two live rows"):
        numbered(table, 7)


def test_a_live_row_in_each_of_two_files_is_refused(table: LakeTable) -> None:
    table.append([(1,), (7,)])
    table.append([(7,)])

    with pytest.raises(IndexRefusedError, match=r"part-1\.parquet has two live rows"):
        numbered(table, 7)


def test_a_file_that_is_named_twice_is_refused(table: LakeTable) -> None:
    table.append([(1,)])

    with pytest.raises(IndexRefusedError, match="twice"):
        table.index.look_up(batch(KEY, [(5,)]), table.live() * 2)


@pytest.mark.parametrize("row", [-1, 2])
def test_a_vector_of_another_file_is_refused(table: LakeTable, row: int) -> None:
    table.append([(1,), (2,)])
    table.deleted["part-0.parquet"] = {row}

    with pytest.raises(IndexRefusedError, match=r"beyond data file part-0\.parquet"):
        numbered(table, 1)


def test_deleted_rows_may_come_in_any_order_and_width(table: LakeTable) -> None:
    file = table.append([(1,), (2,), (3,)])
    for deleted in ([2, 0, 2], np.array([2, 0], np.uint64), range(0, 3, 2), iter([0, 2])):
        places = table.index.look_up(batch(KEY, [(1,), (2,), (3,)]), [LiveFile(file, deleted)])

        assert as_list(places) == [None, (file.path, 1), None]


def test_no_keys_no_files_and_empty_files(table: LakeTable) -> None:
    assert numbered(table, 1) == [None]
    table.append([])
    table.append([(1,)])

    assert numbered(table) == []
    assert numbered(table, 1, 2) == [("part-1.parquet", 0), None]


def test_a_null_is_refused_in_a_batch_and_in_a_file(table: LakeTable) -> None:
    table.append([(1,)])
    with pytest.raises(IndexRefusedError, match="k0 of the key holds a NULL"):
        table.look_up([(None,)])
    table.append([(2,), (None,)])
    with pytest.raises(IndexRefusedError, match="k0 of the key holds a NULL"):
        numbered(table, 1)


def test_a_file_that_is_not_what_the_log_says_is_refused(table: LakeTable) -> None:
    file = table.append([(1,)])
    wrong = [
        DataFile(file.path, file.size + 1, 1),
        DataFile(file.path, file.size, 2),
        DataFile("gone.parquet", 1, 1),
    ]
    for other in wrong:
        with pytest.raises(IndexRefusedError, match=other.path):
            table.index.look_up(batch(KEY, [(1,)]), [LiveFile(other)])
    (table.folder / "table" / "junk").write_bytes(b"junk")
    with pytest.raises(IndexRefusedError, match="junk cannot be read"):
        table.index.look_up(batch(KEY, [(1,)]), [LiveFile(DataFile("junk", 4, 1))])


def test_a_file_without_the_key_column_is_refused(table: LakeTable) -> None:
    other = (KeyColumn("k0", "another", "bigint"),)
    file = write(table.folder / "table", "other.parquet", other, [(1,)])

    with pytest.raises(IndexRefusedError, match=r"no column col-0\.x"):
        table.index.look_up(batch(KEY, [(1,)]), [LiveFile(file)])


@pytest.mark.parametrize("types", [("bigint",), ("string",)])
@pytest.mark.parametrize("restart", [False, True])
def test_a_name_that_is_used_again_has_another_index(
    tmp_path: Path, types: tuple[str, ...], *, restart: bool
) -> None:
    """The content has the same size, rows and extremes, so its footer is the same too."""
    table = LakeTable(tmp_path, key_of(*types), 0)
    one, two, three = [(value if types == ("string",) else int(value),) for value in "123"]
    file = table.append([one, two, three])
    assert table.look_up([two]) == [(file.path, 1)]

    os.utime(tmp_path / "table" / file.path, ns=(1, 1))
    again = write(tmp_path / "table", file.path, table.key, [two, one, three])
    assert again == file
    if restart:
        table.restart()
    live = LiveFile(file if restart else DataFile(file.path, file.size, file.rows, modified=2))

    assert as_list(table.index.look_up(batch(table.key, [two]), [live])) == [(file.path, 0)]


def test_another_time_in_the_log_does_not_make_an_index_again(table: LakeTable) -> None:
    file = table.append([(1,), (2,)])
    numbered(table, 1)
    later = DataFile(file.path, file.size, file.rows, modified=5)

    table.index.look_up(batch(KEY, [(1,)]), [LiveFile(later)])
    assert table.index.statistics().made == 1


@pytest.mark.parametrize("types", [("bigint",), ("string",), ("double", "string")])
def test_confirm_reads_the_file_itself(tmp_path: Path, types: tuple[str, ...]) -> None:
    table = LakeTable(tmp_path, key_of(*types))
    number = {"bigint": int, "string": str, "double": float}
    keys = [tuple(number[kind](value) for kind in types) for value in range(30)]
    file = table.append(keys)
    places = table.index.look_up(batch(table.key, keys), table.live())
    table.index.confirm(batch(table.key, keys), places)

    for row in range(30):
        off = places.row.copy()
        off[row] = (row + 1) % 30
        with pytest.raises(IndexRefusedError, match=file.path):
            table.index.confirm(batch(table.key, keys), Places(places.files, places.file, off))


def test_confirm_refuses_a_row_that_the_file_has_not(table: LakeTable) -> None:
    file = table.append([(1,)])
    places = Places((file,), np.zeros(1, np.int32), np.ones(1, np.int64))

    with pytest.raises(IndexRefusedError, match=file.path):
        table.index.confirm(batch(KEY, [(1,)]), places)


def test_files_whose_range_cannot_hold_the_keys_are_not_searched(
    table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for begin in range(0, 1000, 100):
        table.append([(begin + number,) for number in range(100)])
    assert numbered(table, 250) == [("part-2.parquet", 50)]
    sizes: list[int] = []
    real = np.searchsorted

    def counted(held: object, wanted: object, *more: object) -> object:
        sizes.append(np.size(wanted) if np.size(held) == 100 else 0)  # type: ignore[arg-type]
        return real(held, wanted, *more)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "searchsorted", counted)
    table.index.look_up(batch(KEY, [(250,), (5000,), (-1,)]), table.live())
    assert sum(sizes) == 1


def test_a_key_of_a_type_without_an_index_is_refused(tmp_path: Path) -> None:
    for key, why in (((), "no key"), ((KeyColumn("a", "a", "array<int>"),), "array<int>")):
        with pytest.raises(IndexRefusedError, match=why):
            KeyIndex(key=key, table=pa.fs.LocalFileSystem(), directory=tmp_path, memory_bytes=0)
