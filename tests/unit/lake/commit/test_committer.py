"""A commit from this process: what independent readers see, and what a kill leaves."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.failpoints import Failpoint
from cdc.lake.commit import committer as module
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.snapshot import checkpoint_name
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.foreign_commits import ForeignCommitCheck
from cdc.lake.table.positions import position
from tests.unit.lake.commit.small_table import actions, add, at, ids, make, rows, seen


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
