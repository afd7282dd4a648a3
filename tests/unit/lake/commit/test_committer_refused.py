"""A commit from this process that cannot be made is refused before anything is written."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.table.entry_file import entry_name
from tests.unit.lake.commit.small_table import actions, add, append_entry, at, ids, make, rows

WRONG: dict[str, Callable[[str, str], dict[str, list[int]]]] = {
    "a row beyond the file": lambda first, _: {first: [5]},
    "a row before the file": lambda first, _: {first: [-1]},
    "a row that is deleted": lambda first, _: {first: [0]},
    "a row named twice": lambda first, _: {first: [1, 1]},
    "a row of the larger file": lambda first, _: {first: [8]},
    "one right, one wrong": lambda first, second: {second: [8], first: [8]},
    "a file that is not there": lambda *_: {"part-x.parquet": [0]},
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_row_is_refused_before_anything_is_written(tmp_path: Path, how: str) -> None:
    committer = make(tmp_path)
    first, second = add(committer, range(5)), add(committer, range(5, 15))
    committer.commit(rows(committer, []), {first: [0]}, at(3))
    new = rows(committer, [99])
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ValueError, match=r"row to delete|not a file"):
        committer.commit(new, WRONG[how](first, second), at(4))

    assert sorted(tmp_path.rglob("*")) == before


def test_rows_of_another_shape_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, range(5))
    committer.open()
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ValueError, match="other columns"):
        committer.commit(pa.table({"id": [1]}), {path: [0]}, at(4))

    assert sorted(tmp_path.rglob("*")) == before


def test_each_commit_follows_a_table_that_was_opened_for_it(tmp_path: Path) -> None:
    committer = make(tmp_path)
    new = rows(committer, [1])
    committer.commit(new, {}, at(1))

    with pytest.raises(ValueError, match="open table"):
        committer.commit(new, {}, at(2))


def test_a_commit_in_between_is_a_conflict(tmp_path: Path) -> None:
    committer, other = make(tmp_path), Committer(str(tmp_path))
    path = add(committer, range(3))
    new = rows(committer, [7])
    other.open()
    other.commit(rows(other, [8]), {path: [1]}, at(5))

    with pytest.raises(CdcError, match="is there already") as raised:
        committer.commit(new, {path: [0]}, at(6))

    assert raised.value.kind is ErrorKind.CONFLICT
    assert ids(tmp_path) == [0, 2, 8]
    committer.commit(rows(committer, [7]), {path: [0]}, at(6))
    assert ids(tmp_path) == [2, 7, 8]


def test_an_older_copy_of_the_table_is_a_conflict(tmp_path: Path) -> None:
    """Otherwise the log would have a gap."""
    committer = make(tmp_path / "t")
    add(committer, [1])
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    add(committer, [2])
    new = rows(committer, [3])
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "copy", tmp_path / "t")

    with pytest.raises(CdcError, match="another than was read") as raised:
        committer.commit(new, {}, at(3))

    assert raised.value.kind is ErrorKind.CONFLICT
    assert not (tmp_path / "t" / entry_name(3)).exists()


def test_a_vector_of_another_form_is_left_to_spark(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, range(3))
    file = committer.open().files[path]
    vector = {
        "storageType": "p",
        "pathOrInlineDv": "file:///elsewhere.bin",
        "offset": 1,
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    add_ = actions(tmp_path, 1)[1]["add"]
    append_entry(
        tmp_path,
        2,
        [
            {"commitInfo": {"userMetadata": at(2).metadata()}},
            {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0}},
            {"add": add_ | {"deletionVector": vector}},
        ],
    )
    changed = committer.open().files[path]

    assert changed == replace(file, vector=changed.vector)
    with pytest.raises(TakeMergeError, match="outside the table"):
        committer.commit(rows(committer, []), {path: [0]}, at(3))


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_damaged_vector_is_named(tmp_path: Path, damage: str) -> None:
    committer = make(tmp_path)
    path = add(committer, range(3))
    committer.commit(rows(committer, []), {path: [1]}, at(2))
    (file,) = tmp_path.glob("deletion_vector_*.bin")
    content = file.read_bytes()
    file.unlink()
    if damage == "changed":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    again = Committer(str(tmp_path))
    nothing = rows(again, [])

    with pytest.raises(CdcError, match=r"deletion vector of .* cannot be read") as raised:
        again.commit(nothing, {path: [0]}, at(3))

    assert raised.value.reason is Reason.TABLE_UNREADABLE


def test_a_table_with_more_than_ours_have_is_left_to_spark(tmp_path: Path) -> None:
    committer = make(tmp_path, more={"delta.enableChangeDataFeed": "true"})

    with pytest.raises(TakeMergeError, match="enableChangeDataFeed") as raised:
        committer.open()

    assert raised.value.reason == "it has the property delta.enableChangeDataFeed"
