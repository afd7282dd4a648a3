"""A derived table stays small, at a bounded work after each commit, and never loses a version."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.derive.step import upkeep
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.committer import Committer
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.upkeep import driver_files
from cdc.lake.upkeep.held import held
from tests.unit.derive.keep.test_writer import COPIES, mark_of, orders, steps
from tests.unit.derive.orders import one
from tests.unit.derive.small_lake import SmallLake, rows_of


def files(entry: DerivedEntry) -> list[Path]:
    return sorted(Path(entry.path).rglob("*.parquet"))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep nothing, and look for it at every tenth version."""
    monkeypatch.setattr(upkeep, "HOUR", 0)
    monkeypatch.setattr(upkeep, "EVERY", 10)


@pytest.mark.usefixtures("eager")
def test_a_version_that_somebody_reads_is_kept(lake: SmallLake) -> None:
    """Even if it is older than versions are kept."""
    entries = steps(lake, 45)
    for _ in range(5):
        early = next(entries)
    (lake.folder / "lake" / "_wal2lake").mkdir()
    with held(f"{lake.folder}/lake"):
        *_, last = entries
        read = [len(rows_of(entry)) for entry in (early, last)]

    assert read == [5, 45]


@pytest.mark.usefixtures("eager")
def test_a_file_in_no_version_goes_once_no_commit_can_add_it(lake: SmallLake) -> None:
    entries = steps(lake, 45)
    path = Path(next(entries).path)
    old, new = path / "old.parquet", path / "new.parquet"
    for stray in (old, new):
        stray.write_bytes(b"x")
    then = time.time() - 3600
    os.utime(old, (then, then))
    *_, last = entries

    assert (old.exists(), new.exists()) == (False, True)
    assert len(rows_of(last)) == 45


def test_readers_open_few_entries_of_its_log(lake: SmallLake) -> None:
    *_, last = steps(lake, 60)

    assert (Path(last.path) / "_delta_log" / f"{50:020d}.checkpoint.parquet").exists()


def test_a_work_that_fails_is_left_for_the_next_time(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_committer: Committer, _files: object) -> None:
        raise CombineError("a reason")

    monkeypatch.setattr(Committer, "combining", fails)
    *_, last = steps(lake, 12)
    most = len(files(last))
    monkeypatch.undo()
    with closing(lake.keep(COPIES, last=[last])) as kept:
        lake.set(orders=orders(14))
        again = one(kept, lake)

    assert (last.state, last.version, most >= 12) == ("streaming", 11, True)
    assert len(DeltaTable(again.path).file_uris()) < 5
    assert len(rows_of(again)) == 14


def test_a_file_of_which_many_rows_are_gone_is_written_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a table whose rows change would grow by each change."""
    monkeypatch.setattr(driver_files, "LOCAL_BYTES", 100)
    with closing(lake.keep(COPIES)) as kept:
        lake.set(orders=orders(200), people=[])
        first = one(kept, lake)
        lake.set(orders=orders(100))
        second = one(kept, lake)

    text = (Path(second.path) / "_delta_log" / f"{second.version:020d}.json").read_text()
    (add,) = [each["add"] for each in map(json.loads, text.splitlines()) if "add" in each]
    assert second.version == first.version + 2
    assert ("deletionVector" in add, json.loads(add["stats"])["numRecords"]) == (False, 100)
    assert len(rows_of(second)) == 100
    assert json.loads(mark_of(second))["cut"] == 2


def changed_each_time(lake: SmallLake, count: int) -> Iterator[DerivedEntry]:
    """Yield the entries of so many cuts, at each of which two rows have gone and two have come."""
    with closing(lake.keep(COPIES)) as kept:
        for cut in range(count):
            lake.set(orders=orders(20 + 2 * cut)[2 * cut :], people=[])
            yield one(kept, lake)


def test_rows_are_found_wherever_upkeep_has_put_them(lake: SmallLake) -> None:
    """A row that is to go may be in a file that was made of others since it was written."""
    entries = list(changed_each_time(lake, 40))

    operations = {commit["operation"] for commit in DeltaTable(entries[-1].path).history()}
    assert "OPTIMIZE" in operations
    whys = [json.loads(mark_of(entry))["cost"]["why"] for entry in entries[1:]]
    assert not any(why.startswith("it is made anew") for why in whys)
    assert [entry.rows for entry in entries] == [20] * 40
    assert [len(rows_of(entry)) for entry in entries] == [20] * 40
