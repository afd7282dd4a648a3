"""A table's state is read from commits and checkpoints, not from a torn transaction log."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.errors import CdcError, Reason
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.snapshot import LogReader, checkpoint_name
from cdc.lake.table.entry_file import entry_name
from tests.unit.lake.commit.small_table import add, at, make, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a table of four versions, in the last of which each file has a vector."""
    committer = make(tmp_path)
    files = [add(committer, range(10)), add(committer, range(10, 30))]
    deleted = {files[0]: [1], files[1]: [2, 3]}
    committer.commit(rows(committer, [1, 12, 13]), deleted, at(3))
    return tmp_path


def checkpoint(path: Path, version: int) -> None:
    DeltaTable(str(path), version=version).create_checkpoint()


def test_a_log_without_a_checkpoint(path: Path) -> None:
    state = LogReader(str(path)).newest()

    assert state.version == 3
    assert sorted(file.records for file in state.files.values()) == [3, 10, 20]
    assert [f.vector.cardinality for f in state.files.values() if f.vector] == [1, 2]


@pytest.mark.parametrize("versions", [[3], [0], [2], [1, 3], [0, 1, 2]])
def test_from_a_checkpoint_it_is_the_same(path: Path, versions: list[int]) -> None:
    expected = LogReader(str(path)).newest()
    for version in versions:
        checkpoint(path, version)

    assert LogReader(str(path)).newest() == expected


def test_commits_before_the_checkpoint_are_not_needed(path: Path) -> None:
    expected = LogReader(str(path)).newest()
    checkpoint(path, 2)
    for version in (0, 1):
        (path / entry_name(version)).unlink()

    assert LogReader(str(path)).newest() == expected


def test_only_new_commits_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogReader(str(path))
    first = log.newest()
    (path / entry_name(1)).write_text("not read again")
    monkeypatch.setattr(LogReader, "_from_checkpoint", None)

    add(make_again(path, log), [50])

    assert log.newest().version == first.version + 1
    assert len(log.newest().files) == len(first.files) + 1


def make_again(path: Path, log: LogReader) -> Committer:
    committer = Committer(str(path))
    committer._log = log
    return committer


def test_another_entry_in_the_place_of_the_last_is_another_table(path: Path) -> None:
    log = LogReader(str(path))
    log.newest()
    assert log.is_unchanged()
    last = path / entry_name(3)
    older = (path / entry_name(1)).read_text()
    last.unlink()
    last.write_text(older)

    assert not log.is_unchanged()
    assert len(log.newest().files) == 2


def test_an_older_copy_of_the_table_is_read_anew(path: Path) -> None:
    log = LogReader(str(path))
    log.newest()
    (path / entry_name(3)).unlink()

    assert not log.is_unchanged()
    assert log.newest().version == 2


@pytest.mark.parametrize("missing", [[1], [0], [0, 1, 2, 3]])
def test_a_log_with_a_gap_is_left_to_spark(path: Path, missing: list[int]) -> None:
    for version in missing:
        (path / entry_name(version)).unlink()

    with pytest.raises(TakeMergeError, match="lacks a commit"):
        LogReader(str(path)).newest()


def test_a_gap_after_the_checkpoint_is_seen(path: Path) -> None:
    checkpoint(path, 1)
    (path / entry_name(2)).unlink()

    with pytest.raises(TakeMergeError, match="lacks a commit"):
        LogReader(str(path)).newest()


@pytest.mark.parametrize("text", ["{", '{"add": {"path": "x"}}', "[]", "\0", '{"add": 1}'])
def test_an_entry_that_cannot_be_read_is_named(path: Path, text: str) -> None:
    (path / entry_name(2)).write_text(text)

    with pytest.raises(CdcError, match="cannot be read") as raised:
        LogReader(str(path)).newest()

    assert raised.value.reason is Reason.TABLE_UNREADABLE


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100])
def test_a_checkpoint_that_cannot_be_read_is_named(path: Path, content: bytes) -> None:
    (path / checkpoint_name(2)).write_bytes(content)

    with pytest.raises(CdcError, match="cannot be read") as raised:
        LogReader(str(path)).newest()

    assert raised.value.reason is Reason.TABLE_UNREADABLE


def test_a_table_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="cannot be read"):
        LogReader(str(tmp_path / "gone")).newest()


def test_temporary_files_are_no_entries(path: Path) -> None:
    left = path / "_delta_log" / ".00000000000000000004.json.0f.tmp"
    left.write_text("{")

    assert LogReader(str(path)).newest().version == 3
