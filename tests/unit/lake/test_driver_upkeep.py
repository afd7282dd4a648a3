"""After each commit of this process its table is kept small, beside the commits and not in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from cdc.config import Job
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.snapshot import checkpoint_name
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.foreign_commits import ForeignCommitCheck
from cdc.lake.table.positions import position
from cdc.lake.upkeep import driver_files, driver_upkeep, maintenance
from cdc.lake.upkeep.driver_files import LOCAL_BYTES, TOGETHER
from cdc.lake.upkeep.driver_upkeep import REST, DriverUpkeep, measured
from cdc.lake.upkeep.maintenance import Files, Maintainer
from tests.later import Later
from tests.unit.lake.commit.small_table import add, append_entry, at, ids, make, rows

T = TypeVar("T")
SESSION: Any = object()  # only Spark's part of the upkeep would use it


class Kept:
    """Commits to a table, and runs its upkeep after each commit."""

    def __init__(self, path: Path, *, checkpoints: int = 1000) -> None:
        self.path = path
        self.committer = make(path, more={"delta.checkpointInterval": str(checkpoints)})
        self.executor = Later()
        self.now = 0.0
        policy = Job(maintain_every_commits=1, vacuum_every_hours=1000)
        self.maintainer = Maintainer(str(path), policy)
        self.upkeep = self.started()
        self.offset = 0

    def started(self) -> DriverUpkeep:
        """Return the upkeep of a job that has just started."""
        return DriverUpkeep(self.committer, self.maintainer, self.executor, lambda: self.now)

    def add(self, keys: Sequence[int]) -> str:
        self.offset += 1
        path = add(self.committer, keys, offset=self.offset)
        self.upkeep.committed(SESSION, at(self.offset))
        return path

    def delete(self, path: str, *numbers: int) -> None:
        self.offset += 1
        self.committer.commit(rows(self.committer, []), {path: numbers}, at(self.offset))
        self.upkeep.committed(SESSION, at(self.offset))

    @property
    def files(self) -> int:
        return len(self.committer.open().files)


def test_small_files_are_combined_beside_the_commits(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    paths = [table.add([number]) for number in range(TOGETHER)]
    assert table.files == TOGETHER
    table.delete(paths[3], 0)  # while they are being combined
    table.add([100])
    assert table.files == TOGETHER

    assert table.executor.work() == 1
    table.add([101])

    assert ids(tmp_path) == [0, 1, 2, *range(4, TOGETHER), 100, 101]
    assert table.files == 3
    assert position(str(tmp_path)) == at(table.offset)
    assert DeltaTable(str(tmp_path)).history(1)[0]["operation"] == "OPTIMIZE"


def test_a_table_of_many_commits_has_few_files_and_all_its_rows(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    commits = ForeignCommitCheck(str(tmp_path))
    commits.checked_version()
    for number in range(10 * TOGETHER):
        table.add([number])
        table.executor.work()

    assert table.files <= TOGETHER + 5
    assert ids(tmp_path) == [*range(10 * TOGETHER)]
    assert commits.checked_version() == table.committer.open().version, "all commits are the job's"


def test_only_one_work_at_a_time_is_begun(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    for number in range(3 * TOGETHER):
        table.add([number])

    assert len(table.executor.waiting) == 1


def test_what_was_begun_is_dropped_if_spark_was_first(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    paths = [table.add([number]) for number in range(TOGETHER)]
    table.executor.work()
    version = table.committer.open().version
    info = {"commitInfo": {"operation": "WRITE", "userMetadata": at(99).metadata()}}
    removes = [
        {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0}} for path in paths
    ]
    append_entry(tmp_path, version + 1, [info, *removes])  # all rows are overwritten

    with capture_logs() as logs:
        table.upkeep.committed(SESSION, at(99))

    assert [log["version"] for log in logs] == ["none is left"]
    assert ids(tmp_path) == []
    assert table.committer.open().version == version + 1


def test_files_that_cannot_be_combined_are_tried_once(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    paths = [table.add([number]) for number in range(TOGETHER)]
    content = (tmp_path / paths[0]).read_bytes()
    (tmp_path / paths[0]).unlink()
    table.executor.work()

    with capture_logs() as logs:
        table.add([99])
    (tmp_path / paths[0]).write_bytes(content)
    table.add([100])

    assert [log["event"] for log in logs] == ["files are not combined"]
    assert not table.executor.waiting
    assert table.files == TOGETHER + 2
    for number in range(200, 200 + TOGETHER):
        table.add([number])
    assert table.executor.work() == 1, "the others are"


def test_a_defect_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Kept(tmp_path)
    monkeypatch.setattr(Committer, "combining", lambda *_: lambda: dict[int, Any]()[0])
    for number in range(TOGETHER):
        table.add([number])
    table.executor.work()

    with pytest.raises(KeyError):
        table.add([99])


def test_a_damaged_vector_stops_the_table(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    path = table.add([1, 2])
    table.delete(path, 0)
    (vectors,) = tmp_path.glob("deletion_vector_*.bin")
    vectors.unlink()
    table.committer = Committer(str(tmp_path))  # the job starts anew
    table.upkeep = table.started()

    for number in range(10, 8 + TOGETHER):
        table.add([number])
    with pytest.raises(CdcError) as raised:
        table.add([99])

    assert raised.value.reason is Reason.TABLE_UNREADABLE


def test_a_foreign_commit_at_the_last_moment_is_left_to_those_who_look_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Kept(tmp_path)
    for number in range(TOGETHER):
        table.add([number])
    table.executor.work()
    other = Committer(str(tmp_path))
    take_place = Committer.take_place

    def late(self: Committer, *arguments: Any) -> int | None:  # noqa: ANN401 - those of take_place
        other.commit(rows(other, []), {}, at(98))
        return take_place(self, *arguments)

    monkeypatch.setattr(Committer, "take_place", late)
    with capture_logs() as logs:
        table.add([99])

    assert [log["event"] for log in logs] == ["combined in vain"]
    assert position(str(tmp_path)) == at(98)
    assert ids(tmp_path) == [*range(TOGETHER), 99]


def test_checkpoints_are_written_beside_the_commits(tmp_path: Path) -> None:
    table = Kept(tmp_path, checkpoints=3)
    written = []
    for number in range(1, 8):
        table.add([number])
        if number != 3:  # that one takes long
            table.executor.work()
        written.append(len(list(tmp_path.glob("_delta_log/*.checkpoint.parquet"))))

    assert written == [0, 0, 0, 1, 1, 2, 2]
    assert (tmp_path / checkpoint_name(3)).exists()
    assert (tmp_path / checkpoint_name(6)).exists()
    assert ids(tmp_path) == [*range(1, 8)]


def test_a_checkpoint_that_became_due_during_another_is_not_forgotten(tmp_path: Path) -> None:
    table = Kept(tmp_path, checkpoints=2)
    for number in range(1, 6):
        table.add([number])
    table.executor.work()
    table.add([6])
    table.executor.work()

    found = sorted(path.name for path in tmp_path.glob("_delta_log/*.checkpoint.parquet"))
    assert [int(name[:20]) for name in found] == [2, 6]


def test_checkpoints_rest_for_many_times_as_long_as_they_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, written = Kept(tmp_path, checkpoints=1), list[int]()

    def slow(_self: Committer, version: int) -> bool:
        table.now += 2
        written.append(version)
        return True

    monkeypatch.setattr(Committer, "checkpoint", slow)
    for number in range(1, 6):
        table.add([number])
        table.executor.work()
    table.now += 2 * REST - 1
    table.add([6])
    assert not table.executor.waiting
    table.now += 1
    table.add([7])
    table.executor.work()

    assert written == [1, 7]


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        (None, Reason.TABLE_OLDER, "lacks version 1 of its log"),
        ("{garbage", Reason.TABLE_UNREADABLE, "cannot be read"),
    ],
)
def test_a_table_that_no_reader_can_open_is_found_at_its_next_checkpoint(
    tmp_path: Path, text: str | None, reason: Reason, said: str
) -> None:
    """Its older entries were replaced while the job committed: what it looks at is whole."""
    table = Kept(tmp_path, checkpoints=3)
    table.add([1])
    table.add([2])
    entry = tmp_path / entry_name(1)
    entry.write_text(text) if text else entry.unlink()
    table.add([3])
    table.executor.work()

    with pytest.raises(CdcError, match=said) as raised:
        table.add([4])

    assert raised.value.kind is ErrorKind.CHAIN_BROKEN
    assert raised.value.reason is reason


def test_a_checkpoint_that_cannot_be_written_does_not_stop_a_table_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Kept(tmp_path, checkpoints=1)
    monkeypatch.setattr(Committer, "checkpoint", lambda *_: False)  # as on a full disk
    for number in range(1, 4):
        table.add([number])
        table.executor.work()

    assert ids(tmp_path) == [1, 2, 3]


def test_what_spark_maintains_is_known_without_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Kept(tmp_path)
    optimized = []
    monkeypatch.setattr(driver_upkeep, "LOCAL_BYTES", 1)
    monkeypatch.setattr(
        maintenance, "optimize", lambda _s, path, metadata, **_: optimized.append((path, metadata))
    )
    monkeypatch.setattr(maintenance, "files", None)
    for number in range(25):
        table.add([number])

    assert optimized[0] == (str(tmp_path), at(24).metadata())


def test_files_are_measured_as_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_upkeep, "LOCAL_BYTES", 1)
    monkeypatch.setattr(driver_files, "PURGED_BYTES", 1)
    monkeypatch.setattr(maintenance, "SMALL_BYTES", 2)
    table = Kept(tmp_path)
    path = table.add(range(10))
    table.add(range(10, 15))
    table.committer.commit(rows(table.committer, []), {path: [1, 2, 3]}, at(3))

    found = measured(table.committer.open())

    by_delta_rs = maintenance.files(str(tmp_path))
    assert sorted(found.sizes) == sorted(by_delta_rs.sizes)
    assert found.deleted == pytest.approx(by_delta_rs.deleted) == pytest.approx(0.3)


def test_a_file_of_medium_size_is_written_again_without_its_deleted_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_files, "LOCAL_BYTES", 1)
    table = Kept(tmp_path)
    path = table.add(range(10))
    table.delete(path, 0, 1)
    assert table.executor.work() == 0, "a fifth is not worth it"
    table.delete(path, 2)
    table.delete(path, 3)  # while it is written again

    assert table.executor.work() == 1
    table.add([10])

    assert ids(tmp_path) == [*range(4, 11)]
    (purged,) = [file for file in table.committer.open().files.values() if file.records == 7]
    assert purged.vector is not None
    assert purged.vector.cardinality == 1
    assert measured(table.committer.open()).deleted == 0


def test_small_files_are_not_sparks(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    table.add([1])

    assert measured(table.committer.open()) == Files(sizes=(), deleted=0.0)
    assert LOCAL_BYTES > 1


def test_a_table_that_has_become_another_is_left_to_spark(tmp_path: Path) -> None:
    table = Kept(tmp_path)
    info = {"commitInfo": {"operation": "SET", "userMetadata": at(1).metadata()}}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"]}
    append_entry(tmp_path, 1, [info, {"protocol": protocol | {"writerFeatures": ["new"]}}])

    table.upkeep.committed(SESSION, at(1))

    assert not table.executor.waiting
