"""Files that never got into a version are found by a listing, and no others are deleted."""

import os
import time
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from cdc.config import Job
from cdc.lake.commit.committer import Committer
from cdc.lake.table.entry_file import entry_name
from cdc.lake.upkeep import strays
from cdc.lake.upkeep.driver_upkeep import DriverUpkeep
from cdc.lake.upkeep.maintenance import UNCOMMITTED_SECONDS, Maintainer
from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.strays import NotUnderstoodError, delete_strays
from cdc.lake.upkeep.transaction_log import first_checkpoint
from tests.later import Later
from tests.unit.lake.commit.small_table import actions, add, append_entry, at, ids, make, rows

DAY: Final = 24 * 3600
STRAYS: Final = ("part-1.parquet", "aB/part-2.parquet", "deletion_vector_x.bin")
OTHERS: Final = ("_spark_metadata/0", ".hidden.parquet", "_delta_log/_last", "aB/.part.crc")


def write(path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"x")


def aged(path: Path, *, log: bool = False) -> float:
    """Make all data files two days old, or the log too; return a day ago."""
    then = time.time() - 2 * DAY
    for file in path.rglob("*"):
        if file.is_file() and (log or "_delta_log" not in file.parts):
            os.utime(file, (then, then))
    return time.time() - DAY


def left(path: Path, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if (path / name).exists()]


def grown(path: Path) -> Committer:
    """Make a table with a removed file, and a file with a vector."""
    committer = make(path)
    first, second = add(committer, [1, 2]), add(committer, [3, 4])
    committer.commit(rows(committer, [5]), {first: [0, 1], second: [0]}, at(3))
    return committer


@pytest.mark.parametrize("log_too", [True, False])
def test_strays_go_and_every_kept_version_stays(tmp_path: Path, *, log_too: bool) -> None:
    grown(tmp_path)
    write(tmp_path, STRAYS + OTHERS)
    since = aged(tmp_path, log=log_too)
    write(tmp_path, ("part-new.parquet",))

    deleted = delete_strays(str(tmp_path), since)

    assert deleted == len(STRAYS) + log_too, "the file that an expired entry has removed too"
    assert left(tmp_path, STRAYS) == []
    assert left(tmp_path, OTHERS) == list(OTHERS)
    assert left(tmp_path, ("part-new.parquet",)), "it is being written"
    assert ids(tmp_path) == [4, 5]
    if not log_too:
        assert ids(tmp_path, 2) == [1, 2, 3, 4]


def test_a_log_that_begins_with_a_checkpoint_is_understood(tmp_path: Path) -> None:
    """As of a copied lake: all its entries are new, and the first are not there."""
    committer = grown(tmp_path)
    assert committer.checkpoint(3)
    for version in range(3):
        (tmp_path / entry_name(version)).unlink()
    add(committer, [6])
    write(tmp_path, STRAYS)

    assert delete_strays(str(tmp_path), aged(tmp_path)) >= len(STRAYS)

    assert ids(tmp_path) == [4, 5, 6]


def test_a_name_with_other_characters_is_the_file_it_names(tmp_path: Path) -> None:
    """The log has names as in a URL."""
    committer = make(tmp_path)
    file = add(committer, [1])
    (tmp_path / file).rename(tmp_path / "part 1%.parquet")
    changed = next(a["add"] for a in actions(tmp_path, 1) if "add" in a)
    changed["path"] = "part%201%25.parquet"
    append_entry(tmp_path, 1, [{"commitInfo": {"userMetadata": "{}"}}, {"add": changed}])

    assert delete_strays(str(tmp_path), aged(tmp_path)) == 0


@pytest.mark.parametrize("change", ["elsewhere", "damaged"])
def test_nothing_is_deleted_of_a_table_that_is_not_understood(tmp_path: Path, change: str) -> None:
    grown(tmp_path)
    write(tmp_path, STRAYS)
    if change == "elsewhere":
        action = next(a["add"] for a in actions(tmp_path, 1) if "add" in a)
        action["path"] = f"file://{tmp_path}/part-1.parquet"
        append_entry(tmp_path, 4, [{"commitInfo": {}}, {"add": action}])
    else:
        text = (tmp_path / entry_name(2)).read_text()
        (tmp_path / entry_name(2)).write_text(text.replace('"path":', '"was":'))

    with pytest.raises(NotUnderstoodError):
        delete_strays(str(tmp_path), aged(tmp_path))

    assert left(tmp_path, STRAYS) == list(STRAYS)


@pytest.mark.parametrize(("missing", "found"), [(1, True), (2, False)])
def test_an_entry_may_be_cleaned_while_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int, *, found: bool
) -> None:
    grown(tmp_path)
    write(tmp_path, STRAYS)
    looks = list[float]()

    def cleaned(names: Iterable[str]) -> int | None:
        looks.append(0)
        if len(looks) <= missing:
            raise FileNotFoundError
        return first_checkpoint(names)

    monkeypatch.setattr(strays, "first_checkpoint", cleaned)
    expected = nullcontext() if found else pytest.raises(NotUnderstoodError)
    with expected:
        delete_strays(str(tmp_path), aged(tmp_path))

    assert left(tmp_path, STRAYS) == ([] if found else list(STRAYS))


class Upkeep:
    """The upkeep of a table for which strays are due every second."""

    def __init__(self, path: Path) -> None:
        self.path, self.executor, self.now = path, Later(), 0.0
        self.committer = make(path)
        policy = Job(
            maintain_every_commits=1, vacuum_every_hours=1 / 3600, vacuum_retention_hours=0
        )
        maintainer = Maintainer(str(path), policy, lambda: self.now, self.executor)
        self.upkeep = DriverUpkeep(self.committer, maintainer, self.executor, lambda: self.now)

    def commit(self, number: int) -> None:
        add(self.committer, [number], offset=number)
        unused: Any = object()  # Spark is asked for nothing
        self.upkeep.committed(unused, at(number))


def test_it_is_the_work_of_the_executor_when_it_is_due(tmp_path: Path) -> None:
    table = Upkeep(tmp_path)
    table.commit(1)
    write(tmp_path, STRAYS)
    aged(tmp_path)
    table.now += 1
    table.commit(2)
    assert left(tmp_path, STRAYS) == list(STRAYS)

    table.executor.work()
    with capture_logs() as logs:
        table.commit(3)

    assert left(tmp_path, STRAYS) == []
    assert [log["files"] for log in logs if log["event"] == "vacuumed"] == [len(STRAYS)]
    assert ids(tmp_path) == [1, 2, 3]


def test_a_young_file_may_get_into_a_version_yet(tmp_path: Path) -> None:
    """Whatever the retention is."""
    table = Upkeep(tmp_path)
    table.commit(1)
    write(tmp_path, STRAYS)
    young = time.time() - UNCOMMITTED_SECONDS / 2
    for name in STRAYS:
        os.utime(tmp_path / name, (young, young))
    table.now += 1
    table.commit(2)
    table.executor.work()

    assert left(tmp_path, STRAYS) == list(STRAYS)


def test_cleaning_leaves_what_strays_would_find(tmp_path: Path) -> None:
    """The two agree on what a kept version needs."""
    grown(tmp_path)
    since = aged(tmp_path, log=True)

    clean(str(tmp_path), since)

    assert delete_strays(str(tmp_path), since) == 0
    assert ids(tmp_path) == [4, 5]
