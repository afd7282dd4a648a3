"""Foreign commits of a table are detected, even below a commit of ours."""

import json
import shutil
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.table import foreign_commits as module
from cdc.lake.table.foreign_commits import ForeignCommitCheck
from cdc.lake.table.positions import MARK

OURS = CommitProperties(custom_metadata={"userMetadata": json.dumps({MARK: 1, "offset": 1})})
ROW = pa.table({"id": [1]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Create a table with two commits of ours."""
    path = str(tmp_path / "t")
    for _ in range(2):
        write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    return path


def test_versions_of_ours_are_accepted(path: str) -> None:
    commits = ForeignCommitCheck(path)

    assert commits.checked_version() == 1
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    assert [commits.checked_version(), commits.checked_version()] == [3, 3]


@pytest.mark.parametrize("under", [False, True])
def test_a_foreign_commit_is_refused_even_below_one_of_ours(path: str, under: bool) -> None:
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    DeltaTable(path).delete("id = 1")
    if under:
        write_deltalake(path, ROW, mode="append", commit_properties=OURS)

    for _ in range(2):
        with pytest.raises(
            CdcError, match=r"version 2 of .* was not written by wal2lake"
        ) as raised:
            commits.checked_version()
        assert raised.value.kind is ErrorKind.CHAIN_BROKEN
    assert commits.seen == 1


@pytest.mark.parametrize("metadata", ["[1]", "no JSON", json.dumps({MARK: 2})])
def test_metadata_that_only_resembles_ours_is_refused(path: str, metadata: str) -> None:
    write_deltalake(
        path,
        ROW,
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": metadata}),
    )

    with pytest.raises(CdcError, match="was not written by wal2lake"):
        ForeignCommitCheck(path).checked_version()


@pytest.mark.parametrize("metadata", ["[1]", "no JSON", json.dumps({MARK: 2})])
def test_metadata_that_only_resembles_ours_is_refused_in_a_later_commit(
    path: str, metadata: str
) -> None:
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    mark = CommitProperties(custom_metadata={"userMetadata": metadata})
    write_deltalake(path, ROW, mode="append", commit_properties=mark)

    with pytest.raises(CdcError, match=r"version 2 of .* was not written by wal2lake"):
        commits.checked_version()


def count_opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each opening of a table adds its path."""
    opened: list[str] = []

    def open_table(path: str) -> DeltaTable:
        opened.append(path)
        return DeltaTable(path)

    monkeypatch.setattr(module, "open_table", open_table)
    return opened


def test_a_table_is_opened_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = count_opened(monkeypatch)
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)

    assert [commits.checked_version(), commits.checked_version()] == [2, 2]
    assert opened == [path]


def test_a_table_whose_newest_entry_is_another_file_is_opened_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    entry = Path(path, "_delta_log", f"{1:020d}.json")
    text = entry.read_text()
    entry.unlink()
    entry.write_text(f"{text}\n")
    opened = count_opened(monkeypatch)

    assert [commits.checked_version(), commits.checked_version()] == [1, 1]
    assert opened == [path]


@pytest.mark.parametrize("text", ["{", "[1]\n", "1\n"])
def test_a_later_entry_that_cannot_be_read_is_refused(path: str, text: str) -> None:
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    Path(path, "_delta_log", f"{2:020d}.json").write_text(text)

    for _ in range(2):
        with pytest.raises(CdcError, match=r"cannot be read|was not written"):
            commits.checked_version()
    assert commits.seen == 1


def test_a_table_restored_from_an_older_copy_is_refused(path: str, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)

    with pytest.raises(CdcError, match="is at version 1, but was at 2"):
        commits.checked_version()
    commits.forget()
    assert commits.checked_version() == 1


def test_a_table_that_is_gone_is_refused_but_not_one_that_never_existed(path: str) -> None:
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    shutil.rmtree(path)

    with pytest.raises(CdcError, match="is gone"):
        commits.checked_version()
    assert ForeignCommitCheck(path).checked_version() == -1


def test_a_table_with_an_unreadable_log_is_refused(path: str) -> None:
    for file in Path(path, "_delta_log").glob("*.json"):
        file.write_text("{")

    with pytest.raises(CdcError, match="cannot be read"):
        ForeignCommitCheck(path).checked_version()


def test_another_thread_may_forget_the_table_meanwhile(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation does so when it has created the table anew, while a cut asks for its version."""
    commits = ForeignCommitCheck(path)
    commits.checked_version()
    is_there = commits._is_there

    def and_forgotten(version: int) -> bool:
        found = is_there(version)
        commits.forget()
        return found

    monkeypatch.setattr(commits, "_is_there", and_forgotten)

    assert commits.checked_version() == 1


def test_a_table_that_goes_while_it_is_opened_cannot_be_read(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_table(path: str) -> NoReturn:
        shutil.rmtree(path)
        raise TableNotFoundError

    monkeypatch.setattr(module, "open_table", open_table)

    with pytest.raises(CdcError) as raised:
        ForeignCommitCheck(path).checked_version()
    assert raised.value.reason is Reason.TABLE_UNREADABLE
