"""Properties of a table are changed by a commit that changes nothing else."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.log_entry import properties_entry
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.first_entry import create_plain_table
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.positions import position
from cdc.lake.upkeep import properties
from cdc.lake.upkeep.properties import set_without_spark
from tests.unit.lake.commit.small_table import actions, add, append_entry, at, ids, make, rows

KEPT = "delta.logRetentionDuration"
CHANGE = {KEPT: "interval 5 seconds", "delta.checkpointInterval": "7"}


def told(path: Path) -> dict[str, str | None]:
    return dict(DeltaTable(str(path)).metadata().configuration)


def test_only_what_is_to_change_changes(tmp_path: Path) -> None:
    committer = make(tmp_path)
    file = add(committer, [1, 2])
    before, columns = told(tmp_path), DeltaTable(str(tmp_path)).schema()

    assert set_without_spark(str(tmp_path), CHANGE, at(1).metadata()) == 2

    assert told(tmp_path) == before | CHANGE
    assert DeltaTable(str(tmp_path)).schema() == columns
    assert position(str(tmp_path)) == at(1)
    committer.commit(rows(committer, [3]), {file: [0]}, at(2))
    assert ids(tmp_path) == [2, 3]
    assert committer.open().metadata.checkpoint_interval == 7


def test_it_follows_a_checkpoint_without_the_entries_before(tmp_path: Path) -> None:
    """A checkpoint has maps in another form than an entry."""
    committer = make(tmp_path)
    add(committer, [1])
    assert committer.checkpoint(1)
    (tmp_path / entry_name(0)).unlink()
    add(committer, [2])
    before = told(tmp_path)

    set_without_spark(str(tmp_path), CHANGE, at(2).metadata())
    set_without_spark(str(tmp_path), {KEPT: "interval 6 seconds"}, at(2).metadata())

    assert told(tmp_path) == before | CHANGE | {KEPT: "interval 6 seconds"}
    assert ids(tmp_path) == [1, 2]


def test_a_plain_table_stays_plain(tmp_path: Path) -> None:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    create_plain_table(str(tmp_path), [field], {}, at(0).metadata())

    set_without_spark(str(tmp_path), CHANGE, at(0).metadata())

    assert told(tmp_path) == CHANGE
    assert DeltaTable(str(tmp_path)).protocol().min_writer_version == 2


def test_a_table_with_something_unknown_is_not_changed(tmp_path: Path) -> None:
    make(tmp_path, more={"delta.enableChangeDataFeed": "true"})

    with pytest.raises(TakeMergeError, match=r"delta\.enableChangeDataFeed"):
        set_without_spark(str(tmp_path), CHANGE, at(0).metadata())

    assert DeltaTable(str(tmp_path)).version() == 0


def test_a_commit_that_came_first_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)

    def overtaken(*given: object) -> str:
        append_entry(tmp_path, 1, [{"commitInfo": {"userMetadata": at(9).metadata()}}])
        return properties_entry(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(properties, "properties_entry", overtaken)
    with pytest.raises(CdcError) as seen:
        set_without_spark(str(tmp_path), CHANGE, at(0).metadata())

    assert seen.value.kind is ErrorKind.CONFLICT
    assert actions(tmp_path, 1) == [{"commitInfo": {"userMetadata": at(9).metadata()}}]
