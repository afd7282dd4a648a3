"""Several files of a plain table become one beside its appends, and no row is lost or moved."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cdc.lake.commit import plain_combined
from cdc.lake.commit.appender import Appender
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.table.positions import position
from tests.unit.lake.commit.small_table import actions, at, seen
from tests.unit.lake.commit.test_appender import make, rows


def in_order(appender: Appender) -> list[LiveFile]:
    """Return the files by their smallest id."""
    return sorted(appender.files(), key=lambda f: json.loads(f.stats or "")["minValues"]["id"])


def appended(path: Path, *landings: pa.Table) -> Appender:
    appender = make(path, configuration={"delta.dataSkippingNumIndexedCols": "1"})
    for number, landing in enumerate(landings, 1):
        appender.append(landing, at(number).metadata())
    return appender


def test_the_rows_stay_in_their_order(tmp_path: Path) -> None:
    appender = appended(tmp_path, rows(5, 4), rows(9), rows(7, 8))
    files = in_order(appender)
    file = appender.combining(files)()

    version = appender.take_place(files, file, at(3).metadata())

    assert version == 4
    [left] = DeltaTable(tmp_path).file_uris()
    assert pq.read_table(left)["id"].to_pylist() == [5, 4, 7, 8, 9]
    assert position(str(tmp_path)) == at(3)
    stats = json.loads(appender.files()[0].stats or "")
    assert stats["numRecords"] == 5
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 4}, {"id": 9})


def test_a_reader_of_changes_has_nothing_to_read(tmp_path: Path) -> None:
    appender = appended(tmp_path, rows(1), rows(2))
    files = in_order(appender)
    appender.take_place(files, appender.combining(files)(), at(2).metadata())

    [info, *changes] = actions(tmp_path, 3)
    assert info["commitInfo"]["operation"] == "OPTIMIZE"
    assert [action["dataChange"] for change in changes for action in change.values()] == [False] * 3


def test_an_append_meanwhile_stays_beside_it(tmp_path: Path) -> None:
    appender = appended(tmp_path, rows(1), rows(2))
    files = in_order(appender)
    work = appender.combining(files)
    appender.append(rows(3), at(3).metadata())

    appender.take_place(files, work(), at(3).metadata())

    assert [row["id"] for row in seen(tmp_path)] == [1, 2, 3]
    assert len(appender.files()) == 2
    assert position(str(tmp_path)) == at(3)


def test_a_file_that_left_meanwhile_is_not_brought_back(tmp_path: Path) -> None:
    appender = appended(tmp_path, rows(1), rows(2))
    files = in_order(appender)
    file = appender.combining(files)()
    DeltaTable(tmp_path).delete("id = 1")

    assert appender.take_place(files, file, at(2).metadata()) is None
    assert [row["id"] for row in seen(tmp_path)] == [2]


def test_a_new_file_that_a_vacuum_deleted_is_not_put_in(tmp_path: Path) -> None:
    appender = appended(tmp_path, rows(1), rows(2))
    files = in_order(appender)
    file = appender.combining(files)()
    (tmp_path / file.path).unlink()

    assert appender.take_place(files, file, at(2).metadata()) is None
    assert [row["id"] for row in seen(tmp_path)] == [1, 2]


@pytest.mark.parametrize("damage", ["gone", "cut", "other rows"])
def test_a_damaged_file_is_left_as_it_is(tmp_path: Path, damage: str) -> None:
    appender = appended(tmp_path, rows(1), rows(2))
    files = in_order(appender)
    broken = tmp_path / files[1].path
    if damage == "gone":
        broken.unlink()
    elif damage == "cut":
        broken.write_bytes(broken.read_bytes()[:-9])
    else:
        pq.write_table(rows(2, 2), broken)

    with pytest.raises(CombineError, match=files[1].path):
        appender.combining(files)()
    assert len(list(tmp_path.glob("*.parquet"))) == len(appender.files()) - (damage == "gone")


def test_a_file_outside_the_table_is_left_as_it_is(tmp_path: Path) -> None:
    appender = appended(tmp_path, rows(1), rows(2))
    elsewhere = [replace(file, path=str(tmp_path / file.path)) for file in in_order(appender)]

    with pytest.raises(CombineError, match="is outside the table"):
        appender.combining(elsewhere)()


def test_small_pieces_become_row_groups_of_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_combined, "PIECE_BYTES", 3 * rows(1).nbytes)
    appender = appended(tmp_path, *(rows(number) for number in range(8)))

    file = appender.combining(in_order(appender))()

    found = pq.ParquetFile(tmp_path / file.path)
    sizes = [found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)]
    assert sizes == [3, 3, 2]
    assert found.read()["id"].to_pylist() == list(range(8))
