"""Whose the commits of a table are, also of one that lies under another."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cdc.errors import CdcError, ErrorKind
from cdc.lake.table.commits import Commits
from cdc.lake.table.positions import MARK

OURS = CommitProperties(custom_metadata={"userMetadata": json.dumps({MARK: 1, "offset": 1})})
ROW = pa.table({"id": [1]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table with two commits of ours."""
    path = str(tmp_path / "t")
    for _ in range(2):
        write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    return path


def test_every_version_of_ours_is_seen(path: str) -> None:
    commits = Commits(path)

    assert commits.version() == 1
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    assert [commits.version(), commits.version()] == [3, 3]


@pytest.mark.parametrize("under", [False, True])
def test_a_commit_of_somebody_else_is_told_also_under_one_of_ours(path: str, under: bool) -> None:
    commits = Commits(path)
    commits.version()
    DeltaTable(path).delete("id = 1")
    if under:
        write_deltalake(path, ROW, mode="append", commit_properties=OURS)

    for _ in range(2):
        with pytest.raises(CdcError, match=r"version 2 of .* was not written by wal2lake") as told:
            commits.version()
        assert told.value.kind is ErrorKind.CHAIN_BROKEN
    assert commits.seen == 1


@pytest.mark.parametrize("metadata", ["[1]", "no JSON", json.dumps({MARK: 2})])
def test_what_only_looks_like_a_mark_is_none(path: str, metadata: str) -> None:
    write_deltalake(
        path,
        ROW,
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": metadata}),
    )

    with pytest.raises(CdcError, match="was not written by wal2lake"):
        Commits(path).version()


def test_a_table_that_was_restored_to_an_older_copy_is_told(path: str, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    write_deltalake(path, ROW, mode="append", commit_properties=OURS)
    commits = Commits(path)
    commits.version()
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)

    with pytest.raises(CdcError, match="is at version 1, but was at 2"):
        commits.version()
    commits.forget()
    assert commits.version() == 1


def test_a_table_that_is_gone_is_told_and_one_that_never_was_is_not(path: str) -> None:
    commits = Commits(path)
    commits.version()
    shutil.rmtree(path)

    with pytest.raises(CdcError, match="is gone"):
        commits.version()
    assert Commits(path).version() == -1


def test_a_table_whose_log_cannot_be_read_is_told(path: str) -> None:
    for file in Path(path, "_delta_log").glob("*.json"):
        file.write_text("{")

    with pytest.raises(CdcError, match="cannot be read"):
        Commits(path).version()
