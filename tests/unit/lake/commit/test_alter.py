"""A table is altered by a commit that leaves its files as they are."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.steps import DropColumn, RenameColumn
from cdc.lake.alter.alter import alter as alter_by_any
from cdc.lake.commit import alter
from cdc.lake.commit.alter import alter_without_spark
from cdc.lake.commit.alteration import AddColumns, AllowFeature, Alteration, SetProperties
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.log_entry import altered_entry
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.first_entry import create_plain_table
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.positions import position
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

KEPT = "delta.logRetentionDuration"
NOON = datetime(2020, 1, 1, 12)  # noqa: DTZ001 - it has no zone
MORE = {"name": "more", "type": "timestamp_ntz", "nullable": True, "metadata": {}}
CHANGE = {KEPT: "interval 5 seconds", "delta.checkpointInterval": "7"}


def told(path: Path) -> dict[str, str | None]:
    return dict(DeltaTable(str(path)).metadata().configuration)


def test_only_what_is_to_change_changes(tmp_path: Path) -> None:
    committer = make(tmp_path)
    file = add(committer, [1, 2])
    before, columns = told(tmp_path), DeltaTable(str(tmp_path)).schema()

    assert alter_without_spark(str(tmp_path), SetProperties(CHANGE), at(1).metadata()) == 2

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
    before, other = told(tmp_path), {KEPT: "interval 6 seconds"}

    alter_without_spark(str(tmp_path), SetProperties(CHANGE), at(2).metadata())
    alter_without_spark(str(tmp_path), SetProperties(other), at(2).metadata())

    assert told(tmp_path) == before | CHANGE | other
    assert ids(tmp_path) == [1, 2]


def test_a_plain_table_stays_plain(tmp_path: Path) -> None:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    create_plain_table(str(tmp_path), [field], {}, at(0).metadata())

    alter_without_spark(str(tmp_path), SetProperties(CHANGE), at(0).metadata())

    assert told(tmp_path) == CHANGE
    assert DeltaTable(str(tmp_path)).protocol().min_writer_version == 2


def test_a_table_with_something_unknown_is_not_changed(tmp_path: Path) -> None:
    make(tmp_path, more={"delta.enableChangeDataFeed": "true"})

    with pytest.raises(TakeMergeError, match=r"delta\.enableChangeDataFeed"):
        alter_without_spark(str(tmp_path), SetProperties(CHANGE), at(0).metadata())

    assert DeltaTable(str(tmp_path)).version() == 0


def test_a_commit_that_came_first_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)

    def overtaken(*given: object) -> str:
        append_entry(tmp_path, 1, [{"commitInfo": {"userMetadata": at(9).metadata()}}])
        return altered_entry(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(alter, "altered_entry", overtaken)
    with pytest.raises(CdcError) as refused:
        alter_without_spark(str(tmp_path), SetProperties(CHANGE), at(0).metadata())

    assert refused.value.kind is ErrorKind.CONFLICT
    assert actions(tmp_path, 1) == [{"commitInfo": {"userMetadata": at(9).metadata()}}]


def test_columns_change_while_files_stay_and_rows_go_on(tmp_path: Path) -> None:
    committer = make(tmp_path)
    file = add(committer, [1, 2])

    for change in (
        RenameColumn("name", "said"),
        AllowFeature("timestampNtz"),
        AddColumns([MORE]),
        DropColumn("said"),
        AddColumns([{**MORE, "name": "name", "type": "string"}]),
    ):
        alter_without_spark(str(tmp_path), change, at(1).metadata())

    assert position(str(tmp_path)) == at(1)
    assert set(committer.open().files) == {file}
    kept = {"_cdc_offset": 1, "more": None, "name": None}
    assert seen(tmp_path) == [{"id": 1, **kept}, {"id": 2, **kept}]
    assert [column.field_id for column in committer.open().metadata.columns] == [1, 3, 10, 11]
    new = pa.Table.from_pylist(
        [{"id": 3, "_cdc_offset": 2, "more": NOON, "name": "new"}],
        schema=arrow_schema(committer.open().metadata),
    )
    committer.commit(new, {file: [0]}, at(2))
    third = {"id": 3, "_cdc_offset": 2, "more": NOON, "name": "new"}
    assert seen(tmp_path) == [{"id": 2, **kept}, third]
    assert seen(tmp_path, version=1)[0] == {"id": 1, "name": "n1", "_cdc_offset": 1}


@pytest.mark.parametrize(
    "change",
    [
        RenameColumn("gone", "more"),
        RenameColumn("name", "ID"),
        DropColumn("gone"),
        AddColumns([{**MORE, "name": "Name"}]),
    ],
    ids=["rename what is not there", "a name twice", "drop what is not there", "add it again"],
)
def test_what_delta_refuses_is_left_to_spark(tmp_path: Path, change: Alteration) -> None:
    make(tmp_path)

    with pytest.raises(TakeMergeError):
        alter_without_spark(str(tmp_path), change, at(0).metadata())

    assert DeltaTable(str(tmp_path)).version() == 0


def test_ids_are_not_guessed(tmp_path: Path) -> None:
    """A column with the id of one that was dropped would show its values."""
    make(tmp_path)
    entry = tmp_path / entry_name(0)
    entry.write_text(entry.read_text().replace("columnMapping.maxColumnId", "logRetentionDuration"))

    with pytest.raises(TakeMergeError, match="maxColumnId"):
        alter_without_spark(str(tmp_path), AddColumns([MORE]), at(0).metadata())


def test_a_plain_table_gets_no_columns(tmp_path: Path) -> None:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    create_plain_table(str(tmp_path), [field], {}, at(0).metadata())

    with pytest.raises(TakeMergeError, match="1/2"):
        alter_without_spark(str(tmp_path), AddColumns([MORE]), at(0).metadata())


def test_a_commit_of_maintenance_in_between_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)
    commits = iter([[{"commitInfo": {"userMetadata": at(9).metadata()}}]])

    def overtaken(*given: object) -> str:
        for other in commits:
            append_entry(tmp_path, 1, other)
        return altered_entry(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(alter, "altered_entry", overtaken)
    nobody: Any = None  # Spark is not asked
    alter_by_any(nobody, str(tmp_path), DropColumn("name"), at(1).metadata())

    assert DeltaTable(str(tmp_path)).version() == 2
    names = [field.name for field in DeltaTable(str(tmp_path)).schema().fields]
    assert names == ["id", "_cdc_offset"]
