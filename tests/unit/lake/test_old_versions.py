"""Cleaning deletes what no kept version needs and nothing else, wherever it is killed."""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from cdc.failpoints import Failpoint
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.files.local import LocalStore
from cdc.lake.table.entry_file import entry_name
from cdc.lake.upkeep import old_versions
from cdc.lake.upkeep.old_versions import clean
from tests.unit.lake.commit.small_table import (
    actions,
    add,
    append_entry,
    at,
    ids,
    make,
    rows,
    seen,
)

DAY = 24 * 3600
CHECKPOINT_EVERY = 4
POINTS = [
    Failpoint.BEFORE_FILE_EXPIRY,
    Failpoint.AFTER_FILE_EXPIRY,
    Failpoint.BEFORE_COMMIT_EXPIRY,
    Failpoint.AFTER_COMMIT_EXPIRY,
]


class Killed(BaseException):
    """The process has died here."""


def grown(path: Path, commits: int = 12) -> Committer:
    """Make a table whose commits add rows, delete older ones and combine files."""
    committer = make(path, more={"delta.checkpointInterval": str(CHECKPOINT_EVERY)})
    first, before = add(committer, range(100)), 1
    for number in range(commits):
        new = rows(committer, [1000 + number, 2000 + number], offset=number)
        version = committer.commit(new, {first: [number, 99 - number]}, at(number))
        if number == commits // 2:
            opened = committer.open()
            small = [file for path, file in opened.files.items() if path != first]
            version = committer.take_place(committer.combining(small)(), at(number)) or version
        committer.open()
        if (due := committer.due_for_checkpoint(before, version)) is not None:
            assert committer.checkpoint(due)
        before = version
    return committer


def aged(path: Path, versions: int) -> float:
    """Let the first so many versions be two days old, and the rest new; return a day ago."""
    now = time.time()
    for file in (path / "_delta_log").iterdir():
        if file.name[:20].isdecimal():
            was = now - 2 * DAY if int(file.name[:20]) < versions else now
            os.utime(file, (was, was))
    return now - DAY


def files(path: Path) -> set[str]:
    return {file.name for file in path.iterdir() if file.is_file()}


def named(path: Path, versions: Iterable[int]) -> set[str]:
    """Return the names of the data files and vectors of these versions; the log is whole."""
    found = set[str]()
    for version in versions:
        copied = path.with_name(f"at-{version}")
        (copied / "_delta_log").mkdir(parents=True)
        for number in range(version + 1):
            shutil.copy(path / entry_name(number), copied / entry_name(number))
        for file in LogReader(str(copied)).newest().files.values():
            found |= {file.path} | ({file.vector.file or ""} if file.vector else set())
        shutil.rmtree(copied)
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "table"
    grown(path)
    return path


@pytest.mark.parametrize("old", [0, 1, 2, 7, 10, 14, 15])
def test_every_kept_version_is_read_as_before_and_nothing_else_is_left(
    table: Path, tmp_path: Path, old: int
) -> None:
    """``old`` of the fifteen versions are older than what is kept."""
    path = tmp_path / "table"
    shutil.copytree(table, path)
    newest = LogReader(str(path)).newest().version
    assert newest == 14
    kept = range(max(0, old - 1), newest + 1)
    before = {version: seen(path, version) for version in kept}
    needed = named(path, kept)

    cleaned = clean(str(path), aged(path, old))

    assert files(path) == needed
    assert {version: seen(path, version) for version in kept} == before
    assert len(cleaned.ages) == 15 - max(old, 0)
    entries = [int(file.stem) for file in (path / "_delta_log").glob("*.json")]
    assert min(entries) > old - 1 - CHECKPOINT_EVERY - 1
    assert seen(path) == before[newest]


def killed_and_whole(table: Path, folder: Path) -> tuple[Path, Path, float]:
    """Return a copy to be cleaned by a process that dies, one that is clean, and the time."""
    path, whole = folder / "killed", folder / "whole"
    for each in (path, whole):
        shutil.copytree(table, each)
        since = aged(each, 11)
    clean(str(whole), since)
    return path, whole, since


@pytest.mark.parametrize("point", POINTS)
def test_what_a_killed_cleaning_has_left_the_next_one_finds(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Failpoint
) -> None:
    path, whole, since = killed_and_whole(table, tmp_path)

    def reach(reached: Failpoint) -> None:
        if reached is point:
            raise Killed

    monkeypatch.setattr(old_versions, "reach", reach)
    with pytest.raises(Killed):
        clean(str(path), since)
    for version in range(10, 15):
        assert ids(path, version) == ids(whole, version)
    monkeypatch.undo()
    clean(str(path), since)

    assert files(path) == files(whole)
    assert files(path / "_delta_log") == files(whole / "_delta_log")


@pytest.mark.parametrize("deletions", [1, 4, 8, 10, 13, 17])
def test_a_cleaning_that_dies_between_two_deletions_loses_nothing(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletions: int
) -> None:
    """So many files of the table and of its log are deleted, then the process dies."""
    path, whole, since = killed_and_whole(table, tmp_path)
    unlink: Callable[..., None] = Path.unlink
    done = list[Path]()

    def dying(file: Path, *, missing_ok: bool = False) -> None:
        if len(done) == deletions:
            raise Killed
        if file.exists():
            done.append(file)
        unlink(file, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", dying)
    with pytest.raises(Killed):
        clean(str(path), since)
    monkeypatch.undo()
    for version in range(10, 15):
        assert ids(path, version) == ids(whole, version)
    clean(str(path), since)

    assert files(path) == files(whole)
    assert files(path / "_delta_log") == files(whole / "_delta_log")


def test_a_file_that_has_come_back_stays(tmp_path: Path) -> None:
    """As after a RESTORE: an expired commit removed it, and a kept one added it again."""
    committer = make(tmp_path)
    path = add(committer, [1, 2])
    committer.commit(rows(committer, [3]), {path: [0, 1]}, at(2))
    again = next(action["add"] for action in actions(tmp_path, 1) if "add" in action)
    info = {"commitInfo": {"operation": "RESTORE", "userMetadata": at(3).metadata()}}
    append_entry(tmp_path, 3, [info, {"add": again}])
    removed = {"path": path, "dataChange": True, "deletionTimestamp": 0}
    append_entry(tmp_path, 4, [info, {"remove": removed}])

    assert clean(str(tmp_path), aged(tmp_path, 3)).files == 0

    assert ids(tmp_path, 3) == [1, 2, 3]
    assert ids(tmp_path) == [3]


def test_a_vector_file_stays_while_one_of_its_vectors_is_used(tmp_path: Path) -> None:
    committer = make(tmp_path)
    first, second = add(committer, [1, 2]), add(committer, [3, 4])
    committer.commit(rows(committer, []), {first: [0], second: [1]}, at(3))
    committer.commit(rows(committer, []), {first: [1]}, at(4))
    committer.commit(rows(committer, [5]), {}, at(5))

    assert clean(str(tmp_path), aged(tmp_path, 5)).files == 1

    assert ids(tmp_path) == [3, 5]
    assert not (tmp_path / first).exists()


def test_what_is_in_no_version_and_what_is_elsewhere_stays(tmp_path: Path) -> None:
    """A file that is being written is in no version yet."""
    committer = make(tmp_path / "lake" / "t")
    path = tmp_path / "lake" / "t"
    LocalStore(path).write("part-00000-new.parquet", b"new")
    LocalStore(path).write(".part.parquet.crc", b"sum")
    other = tmp_path / "other.parquet"
    other.write_bytes(b"other")
    add(committer, [1])
    info = {"commitInfo": {"operation": "WRITE", "userMetadata": at(2).metadata()}}
    places = [str(other), other.as_uri(), "../../other.parquet", "part.parquet"]
    removes: list[dict[str, Any]] = [
        {"remove": {"path": place, "dataChange": True, "deletionTimestamp": 0}} for place in places
    ]
    append_entry(path, 2, [info, *removes])
    add(committer, [2])
    (path / "part.parquet").write_bytes(b"old")

    assert clean(str(path), aged(path, 3)).files == 1

    assert other.read_bytes() == b"other"
    assert (path / "part-00000-new.parquet").exists()
    assert not (path / "part.parquet").exists()
    assert not (path / ".part.parquet.crc").exists()


def test_a_log_that_is_not_understood_is_left_to_vacuum(tmp_path: Path) -> None:
    grown(tmp_path)
    before = files(tmp_path)
    text = (tmp_path / entry_name(13)).read_text()
    (tmp_path / entry_name(13)).write_text(text.replace('"path":', '"was":'))

    with capture_logs() as logs:
        clean(str(tmp_path), aged(tmp_path, 10))

    assert files(tmp_path) == before
    assert [log["event"] for log in logs] == ["old files are left to VACUUM"]
