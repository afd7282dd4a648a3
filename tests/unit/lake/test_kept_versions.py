"""Old versions are cleaned beside the commits, when due, and never those that somebody holds."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from cdc.config import Job
from cdc.lake.table.entry_file import entry_name
from cdc.lake.upkeep import history, kept_versions
from cdc.lake.upkeep.held import held
from cdc.lake.upkeep.history import LEAST_HOURS
from cdc.lake.upkeep.kept_versions import FILES_KEPT, PARTS, KeptVersions
from tests.later import Later
from tests.unit.lake.commit.small_table import actions, add, append_entry, at, ids, make, rows

HOUR = 3600
SESSION: Any = object()  # only a table that this process may not change would use it


class Kept:
    """A table whose first row is deleted by its third commit, and its old versions."""

    def __init__(self, lake: Path, hours: float | None) -> None:
        (lake / "_wal2lake").mkdir(exist_ok=True)
        self.path = lake / "s" / "t"
        self.now = 0.0
        self.executor = Later()
        self.committer = make(self.path)
        self.file = add(self.committer, [1])
        self.committer.commit(rows(self.committer, [2]), {self.file: [0]}, at(2))
        self.kept = self.started(hours)

    def started(self, hours: float | None, *, beside: bool = True) -> KeptVersions:
        policy = Job(vacuum_retention_hours=hours)
        executor = self.executor if beside else None
        return KeptVersions(str(self.path), policy, lambda: self.now, executor)

    def age(self, hours: float) -> None:
        """Let all versions be so old."""
        for file in (self.path / "_delta_log").iterdir():
            then = time.time() - hours * HOUR
            os.utime(file, (then, then))

    def committed(self, times: int = 1) -> int:
        """Report commits, and return how many cleanings wait."""
        for _ in range(times):
            self.kept.committed(SESSION, at(2).metadata())
        return len(self.executor.waiting)

    def cleaned(self) -> bool:
        """Have the table cleaned when it is due; return whether its first file is gone."""
        self.now += 12 * HOUR
        self.committed()
        self.executor.work()
        self.committed()
        return not (self.path / self.file).exists()


def hours_told(path: Path) -> float:
    """Return how long the table's property says that files are kept."""
    interval = DeltaTable(path).metadata().configuration[FILES_KEPT]
    return int(interval.removeprefix("interval ").removesuffix(" seconds")) / HOUR


@pytest.mark.parametrize(
    ("asked", "age", "gone"),
    [(2.0, 3.0, True), (2.0, 1.0, False), (None, 100.0, False), (None, 200.0, True), (0, 0, True)],
)
def test_files_are_kept_as_long_as_is_promised(
    tmp_path: Path, asked: float | None, age: float, gone: bool
) -> None:
    table = Kept(tmp_path, asked)
    table.age(age)

    assert table.cleaned() is gone
    assert ids(table.path) == [2]


def test_cleaning_is_not_the_work_of_the_thread_that_commits(tmp_path: Path) -> None:
    table = Kept(tmp_path, 2.0)
    table.age(3)
    table.now += HOUR
    assert table.committed(3) == 1, "one at a time"
    assert (table.path / table.file).exists()

    table.executor.work()
    assert not (table.path / table.file).exists()
    assert table.committed(3) == 0
    table.now += 2 * HOUR / PARTS
    assert table.committed() == 1


def test_without_an_executor_it_is_done_at_once(tmp_path: Path) -> None:
    table = Kept(tmp_path, 2.0)
    table.age(3)
    kept = table.started(2.0, beside=False)
    table.now += HOUR

    kept.committed(SESSION, at(2).metadata())

    assert not (table.path / table.file).exists()


def test_no_version_is_cleaned_that_somebody_holds(tmp_path: Path) -> None:
    table = Kept(tmp_path, 2.0)
    table.age(3)
    then = time.time() - 4 * HOUR
    for version in (0, 1):
        os.utime(table.path / entry_name(version), (then, then))

    with held(str(tmp_path), then + HOUR / 2):
        assert table.kept.are_held()
        assert not table.cleaned()
        assert ids(table.path, 1) == [1]
    assert not table.kept.are_held()
    assert table.cleaned()


def test_a_hold_of_something_young_takes_nothing_away(tmp_path: Path) -> None:
    table = Kept(tmp_path, 2.0)
    table.age(1)

    with held(str(tmp_path)):
        assert not table.kept.are_held()
        assert not table.cleaned()


def test_what_was_asked_for_becomes_a_property(tmp_path: Path) -> None:
    table = Kept(tmp_path, 2.5)
    table.cleaned()
    assert hours_told(table.path) == 2.5
    version = DeltaTable(table.path).version()
    table.cleaned()
    assert DeltaTable(table.path).version() == version


def test_a_busy_table_keeps_less_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run of the job goes by what the table says."""
    monkeypatch.setattr(history, "VERSIONS", 40)
    monkeypatch.setattr(kept_versions, "LOOK_COMMITS", 5)
    table = Kept(tmp_path, None)
    for version in range(3, 44):
        append_entry(table.path, version, [{"commitInfo": {"userMetadata": at(2).metadata()}}])
    assert table.committed(4) == 0
    assert table.committed() == 1, "many commits are looked at before it is time"
    table.executor.work()
    table.committed()

    assert hours_told(table.path) == LEAST_HOURS
    info = actions(table.path, 44)[0]["commitInfo"]
    assert json.loads(info["userMetadata"])["offset"] == 2
    assert table.started(None).hours == LEAST_HOURS
    assert table.started(10.0).hours == 10


def test_a_table_that_cannot_be_cleaned_goes_on(tmp_path: Path) -> None:
    table = Kept(tmp_path, 2.0)
    table.age(3)
    table.now += HOUR
    table.committed()
    (table.path / "_delta_log").rename(table.path / "away")
    table.executor.work()
    (table.path / "away").rename(table.path / "_delta_log")

    with capture_logs() as logs:
        table.committed()

    assert [log["event"] for log in logs] == ["old versions are not cleaned"]
    assert table.cleaned()
