"""Test data files that are written in pieces, a commit of them, and a second table of them."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.log_entry import Origin
from cdc.lake.commit.row_files import RowFiles
from cdc.lake.create.linked_table import link_table
from cdc.lake.files.store_of import store_of
from cdc.lake.table.positions import position
from tests.unit.lake.commit.small_table import actions, add, at, ids, make, rows, seen


def written(
    committer: Committer, path: Path, ranges: list[range], *, file: int = 1 << 30, group: int = 1
) -> RowFiles:
    """Return complete files with these ids; each range is given in one piece."""
    metadata = committer.open().metadata
    with RowFiles(store_of(str(path)), metadata, file_bytes=file, group_bytes=group) as files:
        for each in ranges:
            files.add(rows(committer, each))
    return files


def origin(offset: int = 5) -> Origin:
    return Origin(
        read_version=-1, millis=1, metadata=at(offset).metadata(), transaction="t", counts={}
    )


def test_rows_given_in_pieces_are_in_one_commit_with_the_position(tmp_path: Path) -> None:
    committer = make(tmp_path)
    files = written(committer, tmp_path, [range(10), range(10, 25)])

    assert ids(tmp_path) == []  # no version has the file yet
    committer.open()
    assert committer.append(files.files, at(5)) == 1

    assert ids(tmp_path) == list(range(25))
    assert position(str(tmp_path)) == at(5)


def test_a_file_ends_at_its_size_and_a_group_at_its_own(tmp_path: Path) -> None:
    committer = make(tmp_path)

    pieces = [range(n, n + 10) for n in range(0, 100, 10)]
    files = written(committer, tmp_path, pieces, file=500, group=200)

    assert len(files.files) > 1
    read = [pq.ParquetFile(tmp_path / file.path) for file in files.files]
    assert any(each.metadata.num_row_groups > 1 for each in read)
    committer.open()
    committer.append(files.files, at(1))
    assert ids(tmp_path) == list(range(100))


def test_statistics_are_those_of_all_pieces_of_a_file(tmp_path: Path) -> None:
    committer = make(tmp_path)
    (file,) = written(committer, tmp_path, [range(50, 60), range(10), range(20, 30)]).files

    stats = json.loads(file.stats or "")

    assert (stats["numRecords"], file.records) == (30, 30)
    assert (stats["minValues"]["c-1"], stats["maxValues"]["c-1"]) == (0, 59)
    assert file.size == (tmp_path / file.path).stat().st_size


def test_no_rows_make_no_file_but_a_commit(tmp_path: Path) -> None:
    committer = make(tmp_path)
    files = written(committer, tmp_path, [range(0)]).files

    assert files == []
    committer.open()
    assert committer.append(files, at(3)) == 1
    assert position(str(tmp_path)) == at(3)
    assert seen(tmp_path) == []


def test_an_error_leaves_no_open_file(tmp_path: Path) -> None:
    committer = make(tmp_path)
    metadata = committer.open().metadata

    files = RowFiles(store_of(str(tmp_path)), metadata, group_bytes=1)

    def interrupted() -> None:
        with files:
            files.add(rows(committer, range(3)))
            assert list(tmp_path.glob("*.parquet"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()

    assert not list(tmp_path.glob("*.parquet"))
    assert files.files == []


def test_rows_of_another_table_are_refused(tmp_path: Path) -> None:
    committer = make(tmp_path)

    with (
        pytest.raises(ValueError, match="other columns"),
        RowFiles(store_of(str(tmp_path)), committer.open().metadata) as files,
    ):
        files.add(pa.table({"id": pa.array([1], pa.int64())}))


def test_files_are_not_appended_to_a_version_that_somebody_else_has_made(tmp_path: Path) -> None:
    committer = make(tmp_path)
    files = written(committer, tmp_path, [range(3)]).files
    committer.open()
    add(Committer(str(tmp_path)), [7])

    with pytest.raises(CdcError) as refused:
        committer.append(files, at(9))

    assert refused.value.kind is ErrorKind.CONFLICT
    assert ids(tmp_path) == [7]


def test_a_linked_table_keeps_the_rows_that_the_first_loses(tmp_path: Path) -> None:
    committer = make(tmp_path / "t")
    files = written(committer, tmp_path / "t", [range(4), range(4, 8)]).files
    committer.open()

    link_table(str(tmp_path / "t"), files, str(tmp_path / "kept" / "1"), origin())
    committer.append(files, at(5))
    committer.open()
    committer.commit(rows(committer, []), {files[0].path: [0, 1, 2]}, at(6))
    for file in files:
        (tmp_path / "t" / file.path).unlink()

    assert ids(tmp_path / "kept" / "1") == list(range(8))
    assert position(str(tmp_path / "kept" / "1")) == at(5)
    (kept,) = [a["metaData"] for a in actions(tmp_path / "kept" / "1", 0) if "metaData" in a]
    (first,) = [a["metaData"] for a in actions(tmp_path / "t", 0) if "metaData" in a]
    assert kept["id"] != first["id"]
    assert kept["schemaString"] == first["schemaString"]


def test_files_are_copied_where_the_disk_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer = make(tmp_path / "t")
    files = written(committer, tmp_path / "t", [range(4)]).files

    link = os.link

    def only_entries(source: Path, target: Path) -> None:
        if target.suffix == ".parquet":
            raise PermissionError
        link(source, target)

    monkeypatch.setattr(os, "link", only_entries)
    link_table(str(tmp_path / "t"), files, str(tmp_path / "kept"), origin())

    for file in files:
        (tmp_path / "t" / file.path).unlink()
    assert ids(tmp_path / "kept") == list(range(4))
