"""The rows that differ between two versions are those by which the versions differ."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc.lake.changed.changed_rows import changed_rows, count_changed
from cdc.lake.commit import combined, replay, snapshot
from cdc.lake.commit.combined import opened
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.replay import LiveFile, TableState
from cdc.lake.commit.snapshot import LogReader, checkpoint_name, state_at
from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import entry_name
from tests.unit.lake.changed.two_versions import MANY, check_all, differ, restore
from tests.unit.lake.commit.combining import combine, delete, place
from tests.unit.lake.commit.small_table import actions, add, append_entry, at, make, rows


def ids(found: pa.Table) -> list[int]:
    return sorted(found.column("id").to_pylist())


def marked(path: Path) -> tuple[Committer, str, str]:
    """Make a table of two files, version 2, of the first of which rows are deleted in 3."""
    committer = make(path)
    first, second = add(committer, range(5)), add(committer, range(10, 15))
    delete(committer, first, 1, 3)
    return committer, first, second


def test_rows_of_a_vector_are_removed(tmp_path: Path) -> None:
    marked(tmp_path)

    found = differ(tmp_path, 2, 3)

    assert (ids(found.removed), ids(found.added)) == ([1, 3], [])


def test_only_the_rows_that_a_vector_has_more(tmp_path: Path) -> None:
    committer, first, _ = marked(tmp_path)
    delete(committer, first, 0)
    delete(committer, first, 4)

    found = differ(tmp_path, 3, 5)

    assert (ids(found.removed), ids(found.added)) == ([0, 4], [])


def test_a_file_that_goes_takes_the_rows_that_it_had_left(tmp_path: Path) -> None:
    committer, first, _ = marked(tmp_path)
    delete(committer, first, 0, 2, 4)

    assert first not in committer.open().files
    assert ids(differ(tmp_path, 3, 4).removed) == [0, 2, 4]
    assert ids(differ(tmp_path, 2, 4).removed) == [0, 1, 2, 3, 4]


def test_rows_that_come_and_go_in_between_are_not_there(tmp_path: Path) -> None:
    committer, _, _ = marked(tmp_path)
    third = add(committer, range(20, 23))
    delete(committer, third, 0, 1, 2)

    assert count_changed(str(tmp_path), 3, 5) == 0
    assert differ(tmp_path, 3, 5).added.num_rows == 0


def test_a_file_that_came_is_read_without_its_deleted_rows(tmp_path: Path) -> None:
    committer, _, _ = marked(tmp_path)
    delete(committer, add(committer, range(20, 23)), 1)

    assert ids(differ(tmp_path, 3, 5).added) == [20, 22]


def test_a_version_that_is_restored_brings_rows_back(tmp_path: Path) -> None:
    committer, first, second = marked(tmp_path)
    delete(committer, first, 0)
    delete(committer, second, *range(5))
    add(committer, [30])
    restored = restore(tmp_path, 3)

    found = differ(tmp_path, 6, restored)

    assert (ids(found.removed), ids(found.added)) == ([30], [0, 10, 11, 12, 13, 14])
    assert count_changed(str(tmp_path), 3, restored) == 0


def test_rows_that_only_move_do_not_differ(tmp_path: Path) -> None:
    committer, first, second = marked(tmp_path)
    made = combine(committer, [first, second])
    delete(committer, second, 0)
    assert place(committer, made) == 5
    delete(committer, made.file.path, 0)
    add(committer, [40])

    assert count_changed(str(tmp_path), 4, 5) == 0
    found = differ(tmp_path, 2, 7)
    assert (ids(found.removed), ids(found.added)) == ([0, 1, 3, 10], [40])
    check_all(tmp_path, range(8))


def test_a_version_from_before_rows_moved_is_restored(tmp_path: Path) -> None:
    committer, first, second = marked(tmp_path)
    place(committer, combine(committer, [first, second]))
    delete(committer, add(committer, [50, 51]), 0)
    restore(tmp_path, 2)

    check_all(tmp_path, range(8))


def not_believed(path: Path, change: dict[str, Any], operation: str = "OPTIMIZE") -> None:
    """Change what the newest commit, which moves rows, says of itself."""
    version = LogReader(str(path)).newest().version
    lines = [
        {name: said | ({"operation": operation} if name == "commitInfo" else change)}
        for line in actions(path, version)
        for name, said in line.items()
    ]
    append_entry(path, version, lines)


@pytest.mark.parametrize(
    ("change", "operation"), [({"dataChange": True}, "OPTIMIZE"), ({}, "WRITE"), ({}, "MERGE")]
)
def test_a_commit_that_may_do_more_than_move_rows_counts(
    tmp_path: Path, change: dict[str, Any], operation: str
) -> None:
    committer, first, second = marked(tmp_path)
    place(committer, combine(committer, [first, second]))
    not_believed(tmp_path, change, operation)

    assert count_changed(str(tmp_path), 3, 4) == 16
    differ(tmp_path, 3, 4)


def test_a_commit_that_says_that_rows_move_but_loses_some_counts(tmp_path: Path) -> None:
    committer, first, second = marked(tmp_path)
    place(committer, combine(committer, [first, second]))
    version = 4
    kept = [line for line in actions(tmp_path, version) if "add" not in line]
    append_entry(tmp_path, version, kept)

    assert ids(differ(tmp_path, 3, 4).removed) == [0, 2, 4, 10, 11, 12, 13, 14]


def test_files_that_did_not_change_are_not_opened(tmp_path: Path) -> None:
    committer, first, second = marked(tmp_path)
    delete(committer, first, 0)
    (tmp_path / second).write_bytes(b"no Parquet")

    found = changed_rows(str(tmp_path), 2, 4, ["id"], MANY)

    assert found is not None
    assert ids(found.removed) == [0, 1, 3]


def test_a_changed_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committer, first, _ = marked(tmp_path)
    delete(committer, first, 0)
    restore(tmp_path, 2)
    places = []
    kept = combined._place

    def noted(file: LiveFile) -> str:
        places.append(file.path)
        return kept(file)

    monkeypatch.setattr(combined, "_place", noted)

    changed_rows(str(tmp_path), 3, 5, ["id"], MANY)

    assert places == [first]


def test_a_file_of_vectors_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committer, first, second = marked(tmp_path)
    committer.commit(rows(committer, []), {first: [0], second: [0]}, at(9))
    read = []
    kept = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path.name)
        return kept(path)

    monkeypatch.setattr(Path, "read_bytes", noted)

    assert count_changed(str(tmp_path), 3, 4) == 2
    assert len([name for name in read if name.startswith("deletion_vector")]) == 2


def test_of_the_log_only_what_is_needed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint's files that did not change are not even looked at."""
    committer, first, second = marked(tmp_path)
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in range(3):
        (tmp_path / entry_name(version)).unlink()
    delete(committer, first, 0)
    (tmp_path / checkpoint_name(4)).write_bytes(b"of a version that is not asked for")
    assert second in state_at(store_of(str(tmp_path)), 3, 3).files
    parsed = []
    kept = replay.after

    def noted(*arguments: Any) -> TableState:  # noqa: ANN401 - as they come
        parsed.append(kept(*arguments))
        return parsed[-1]

    monkeypatch.setattr(snapshot, "after", noted)

    found = changed_rows(str(tmp_path), 3, 4, ["id"], MANY)

    assert found is not None
    assert ids(found.removed) == [0]
    assert [list(state.files) for state in parsed] == [[first]]


def test_nothing_differs_from_itself(tmp_path: Path) -> None:
    marked(tmp_path)

    found = differ(tmp_path, 3, 3)

    assert (found.removed.num_rows, found.added.num_rows) == (0, 0)


def test_the_log_is_read_from_the_last_checkpoint(tmp_path: Path) -> None:
    committer, first, second = marked(tmp_path)
    DeltaTable(str(tmp_path), version=2).create_checkpoint()
    assert (tmp_path / checkpoint_name(2)).exists()
    delete(committer, second, 2)
    for version in range(2):
        (tmp_path / entry_name(version)).unlink()

    assert ids(differ(tmp_path, 2, 4).removed) == [1, 3, 12]
    assert ids(differ(tmp_path, 3, 4).removed) == [12]
    with opened(committer._store, committer.open().files[first]) as parquet:
        assert parquet.metadata.num_rows == 5
