"""A commit from this process: what independent readers see, and what happens when it cannot be."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.failpoints import Failpoint
from cdc.lake.commit import committer as module
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.snapshot import checkpoint_name
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.foreign_commits import ForeignCommitCheck
from cdc.lake.table.positions import position
from tests.unit.lake.commit.small_table import actions, add, append_entry, at, ids, make, rows, seen


def test_rows_are_added_and_others_deleted_with_the_position(tmp_path: Path) -> None:
    committer = make(tmp_path)
    first = add(committer, range(5))

    version = committer.commit(rows(committer, [1, 9], "new", 7), {first: [1, 3]}, at(7))

    assert version == 2
    assert [(row["id"], row["name"], row["_cdc_offset"]) for row in seen(tmp_path)] == [
        (0, "n0", 1),
        (1, "new1", 7),
        (2, "n2", 1),
        (4, "n4", 1),
        (9, "new9", 7),
    ]
    assert position(str(tmp_path)) == at(7)
    assert ids(tmp_path, 1) == [0, 1, 2, 3, 4]


def test_the_commit_is_one_of_ours(tmp_path: Path) -> None:
    committer = make(tmp_path)
    commits = ForeignCommitCheck(str(tmp_path))
    commits.checked_version()

    add(committer, [1])

    assert commits.checked_version() == 1


def test_later_vectors_have_the_rows_of_earlier_ones(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, range(10))
    for offset, numbers in enumerate([[0], [9, 5], [3]], 2):
        committer.commit(rows(committer, []), {path: numbers}, at(offset))

    assert ids(tmp_path) == [1, 2, 4, 6, 7, 8]
    assert list(committer.deleted_rows(committer.open().files[path])) == [0, 3, 5, 9]
    assert ids(tmp_path, 3) == [1, 2, 3, 4, 6, 7, 8]


def test_all_vectors_of_a_commit_are_in_one_file_each_at_its_own_place(tmp_path: Path) -> None:
    committer = make(tmp_path)
    files = [add(committer, range(start, start + 10)) for start in (0, 10, 20)]

    deleted = {files[0]: [0], files[1]: [1, 2], files[2]: [3, 4, 5]}
    committer.commit(rows(committer, []), deleted, at(4))

    assert len(list(tmp_path.glob("deletion_vector_*.bin"))) == 1
    assert sorted({*range(30)} - {*ids(tmp_path)}) == [0, 11, 12, 23, 24, 25]


def test_a_file_without_rows_leaves_the_table(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, range(3))
    committer.commit(rows(committer, []), {path: [0]}, at(2))

    version = committer.commit(rows(committer, [7]), {path: [1, 2]}, at(3))

    assert ids(tmp_path) == [7]
    assert path not in committer.open().files
    assert [next(iter(line)) for line in actions(tmp_path, version)] == [
        "commitInfo",
        "remove",
        "add",
    ]


def test_a_commit_may_move_the_position_alone(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, [1])
    before = {file.name for file in tmp_path.iterdir()}

    committer.commit(rows(committer, []), {path: []}, at(9))

    assert position(str(tmp_path)) == at(9)
    assert ids(tmp_path) == [1]
    assert {file.name for file in tmp_path.iterdir()} == before
    assert len(actions(tmp_path, 2)) == 1


def test_counts_are_in_the_history(tmp_path: Path) -> None:
    committer = make(tmp_path)
    paths = [add(committer, range(3)), add(committer, [3])]

    committer.commit(rows(committer, [7, 8]), {paths[0]: [0, 1], paths[1]: [0]}, at(3))

    (commit,) = DeltaTable(str(tmp_path)).history(1)
    assert commit["operation"] == "MERGE"
    assert commit["operationMetrics"] == {
        "numOutputRows": "2",
        "numTargetRowsDeleted": "3",
        "numTargetFilesAdded": "1",
        "numTargetFilesRemoved": "1",
        "numTargetDeletionVectorsAdded": "1",
    }


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), max_size=6, unique=True), min_size=1, max_size=5))
def test_random_upserts_leave_the_newest_row_of_each_key(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]]
) -> None:
    path = tmp_path_factory.mktemp("t")
    committer = make(path)
    expected: dict[int, int] = {}
    places: dict[int, tuple[str, int]] = {}
    for offset, keys in enumerate(batches, 1):
        table = committer.open()
        deleted: dict[str, list[int]] = {}
        for key in keys:
            if key in places:
                file, number = places[key]
                deleted.setdefault(file, []).append(number)
        committer.commit(rows(committer, keys, "n", offset), deleted, at(offset))
        new = set(committer.open().files) - set(table.files)
        places |= {key: (name, number) for name in new for number, key in enumerate(keys)}
        expected |= dict.fromkeys(keys, offset)

    assert {row["id"]: row["_cdc_offset"] for row in seen(path)} == expected
    assert len(seen(path)) == len(expected)


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


class KilledError(BaseException):
    """The process is killed here."""


POINTS = [
    Failpoint.BEFORE_ROWS_WRITE,
    Failpoint.AFTER_ROWS_WRITE,
    Failpoint.BEFORE_VECTORS_WRITE,
    Failpoint.AFTER_VECTORS_WRITE,
    Failpoint.BEFORE_ENTRY_PUT,
    Failpoint.AFTER_ENTRY_PUT,
]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_commit_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Failpoint
) -> None:
    committer = make(tmp_path)
    path = add(committer, range(3))
    new = rows(committer, [1], "new", 5)

    def killed(reached: Failpoint) -> None:
        if reached is point:
            raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(module, "reach", killed)
        with pytest.raises(KilledError):
            committer.commit(new, {path: [1]}, at(5))

    done = point is Failpoint.AFTER_ENTRY_PUT
    assert position(str(tmp_path)) == at(5 if done else 1)
    assert [row["name"] for row in seen(tmp_path)] == ["n0", "new1" if done else "n1", "n2"]
    again = Committer(str(tmp_path))
    if not done:
        again.commit(rows(again, [1], "new", 5), {path: [1]}, at(5))
    assert [row["name"] for row in seen(tmp_path)] == ["n0", "new1", "n2"]


def test_all_that_an_entry_names_is_there_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer = make(tmp_path)
    path = add(committer, range(3))
    new = rows(committer, [7])
    steps = []
    store = committer._store
    for name in ("write", "settle", "put_if_absent"):
        does = getattr(store, name)

        def recorded(*arguments: bytes, name: str = name, does: Callable[..., None] = does) -> None:
            steps.append((name, str(arguments[0]).partition("-")[0] if arguments else ""))
            does(*arguments)

        monkeypatch.setattr(store, name, recorded)

    committer.commit(new, {path: [0]}, at(2))

    (wrote, data), (also, vectors), *rest = steps
    assert (wrote, also) == ("write", "write")
    assert {data, vectors.partition("_")[0]} == {"part", "deletion"}
    assert rest == [("settle", ""), ("put_if_absent", entry_name(2))]


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


def test_checkpoints_are_written_when_due_and_change_nothing(tmp_path: Path) -> None:
    committer = make(tmp_path, more={"delta.checkpointInterval": "3"})
    path = add(committer, range(10))
    written = []
    for number in range(2, 8):
        version = committer.commit(rows(committer, [100 + number]), {path: [number]}, at(number))
        if (due := committer.due_for_checkpoint(version - 1, version)) is not None:
            assert committer.checkpoint(due)
            written.append(due)

    assert written == [3, 6]
    assert all((tmp_path / checkpoint_name(version)).exists() for version in written)
    expected = [0, 1, 8, 9, *range(102, 108)]
    assert ids(tmp_path) == expected
    for version in range(6):
        (tmp_path / entry_name(version)).unlink()
    assert ids(tmp_path) == expected
    again = Committer(str(tmp_path))
    again.commit(rows(again, []), {path: [0]}, at(9))
    assert ids(tmp_path) == expected[1:]
    assert position(str(tmp_path)) == at(9)


def test_statistics_of_a_marked_file_hold_for_what_is_left(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, range(5))
    committer.commit(rows(committer, []), {path: [4]}, at(2))

    stats = json.loads(committer.open().files[path].stats or "")

    assert stats["tightBounds"] is False
    assert (stats["numRecords"], stats["maxValues"]["c-1"]) == (5, 4)
