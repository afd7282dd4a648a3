"""Where the rows that differ are not known for certain, none are given at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc.lake.changed import changed_files
from cdc.lake.changed.changed_rows import changed_rows, count_changed
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.snapshot import checkpoint_name
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.local import LocalStore
from cdc.lake.table.entry_file import entry_name
from tests.unit.lake.changed.two_versions import MANY, restore
from tests.unit.lake.commit.combining import delete
from tests.unit.lake.commit.small_table import (
    COLUMNS,
    actions,
    add,
    append_entry,
    at,
    field,
    make,
    metadata_action,
    protocol_action,
    rows,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a table of four versions; rows of both its files are deleted in the last."""
    committer = make(tmp_path)
    first, second = add(committer, range(5)), add(committer, range(10, 15))
    committer.commit(rows(committer, []), {first: [1], second: [2, 3]}, at(3))
    return tmp_path


def is_known(path: Path, old: int = 2, new: int = 3, most: int = MANY) -> bool:
    return changed_rows(str(path), old, new, ["id", "name"], most) is not None


def test_the_table_is_known_before_anything_happens_to_it(path: Path) -> None:
    assert is_known(path)
    assert count_changed(str(path), 2, 3) == 3


def test_more_rows_than_are_worth_it_are_not_read(path: Path) -> None:
    for file in path.glob("*.parquet"):
        file.unlink()

    assert not is_known(path, most=2)
    assert count_changed(str(path), 2, 3) == 3
    assert not is_known(path, most=3)


def test_as_many_rows_as_are_worth_it_are_read(path: Path) -> None:
    assert is_known(path, most=3)


@pytest.mark.parametrize(("old", "new"), [(3, 2), (-1, 3), (2, 4), (4, 4), (7, 9)])
def test_versions_that_are_not_there(path: Path, old: int, new: int) -> None:
    assert not is_known(path, old, new)
    assert count_changed(str(path), old, new) is None


def test_versions_that_are_too_far_apart(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_files, "MOST_COMMITS", 2)

    assert is_known(path, 1, 3)
    assert not is_known(path, 0, 3)


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    assert not is_known(tmp_path / "gone")


def test_a_version_whose_entry_was_cleaned(path: Path) -> None:
    DeltaTable(str(path)).create_checkpoint()
    for version in range(3):
        (path / entry_name(version)).unlink()

    assert not is_known(path)
    assert is_known(path, 3, 3)


def test_an_entry_in_between_is_gone(path: Path) -> None:
    (path / entry_name(2)).unlink()

    assert not is_known(path, 1, 3)


def test_a_data_file_that_was_vacuumed(path: Path) -> None:
    for file in path.glob("*.parquet"):
        file.unlink()

    assert not is_known(path)


def test_a_data_file_of_other_rows(path: Path) -> None:
    first, second = sorted(path.glob("*.parquet"))
    write_deltalake(str(path / "other"), pa.table({"c-1": [1], "c-2": ["a"]}))
    (other,) = (path / "other").glob("*.parquet")
    first.write_bytes(other.read_bytes())

    assert not is_known(path)
    assert second.exists()


@pytest.mark.parametrize("content", [None, b"", b"damaged" * 99])
def test_a_vector_file_that_is_gone_or_damaged(path: Path, content: bytes | None) -> None:
    (vectors,) = path.glob("*.bin")
    if content is None:
        vectors.unlink()
    else:
        vectors.write_bytes(content)

    assert not is_known(path)
    assert count_changed(str(path), 2, 3) is None


def rewritten(path: Path, version: int, name: str, change: Mapping[str, Any]) -> None:
    """Change all actions of this name in an entry."""
    lines = [
        {kind: said | (dict(change) if kind == name else {}) for kind, said in line.items()}
        for line in actions(path, version)
    ]
    append_entry(path, version, lines)


def test_a_vector_outside_the_table(path: Path) -> None:
    vector = {"storageType": "p", "pathOrInlineDv": "/v.bin", "sizeInBytes": 1, "cardinality": 1}
    rewritten(path, 3, "add", {"deletionVector": {**vector, "offset": 1}})

    assert not is_known(path)


def test_a_file_of_which_the_log_has_no_number_of_rows(path: Path) -> None:
    for version in (1, 2, 3):
        rewritten(path, version, "add", {"stats": None})

    assert not is_known(path)


def test_a_file_that_is_removed_with_another_vector(path: Path) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    rewritten(path, 3, "remove", {"deletionVector": vector})

    assert not is_known(path)


def test_a_file_that_is_removed_and_was_not_there(path: Path) -> None:
    rewritten(path, 3, "remove", {"path": "another.parquet"})

    assert not is_known(path)


@pytest.mark.parametrize("more", [{"partitionValues": {"id": "1"}}, {"baseRowId": 1}])
def test_a_file_with_a_partition_or_row_ids(path: Path, more: Mapping[str, Any]) -> None:
    rewritten(path, 3, "add", more)

    assert not is_known(path)


def test_an_entry_that_is_damaged(path: Path) -> None:
    entry = path / entry_name(3)
    entry.write_text(entry.read_text()[:-20])

    assert not is_known(path)


def test_a_checkpoint_that_is_damaged(path: Path) -> None:
    (path / checkpoint_name(2)).write_bytes(b"PAR1")

    assert not is_known(path)


def altered(**changes: object) -> dict[str, Any]:
    """Return the table's metadata with some of it changed."""
    return {"metaData": metadata_action() | changes}


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return altered(schemaString=json.dumps({"type": "struct", "fields": list(fields)}))


ID, NAME, OFFSET = (field(n, name, COLUMNS[name]) for n, name in enumerate(COLUMNS, 1))
CHANGES = {
    "another table": altered(id="f2f0f8b3-9b3e-4cb1-8c49-f3ef0d8f1c11"),
    "another type": schema(ID | {"type": "long"}, NAME, OFFSET),
    "a column renamed": schema(ID | {"name": "number"}, NAME, OFFSET),
    "a column dropped": schema(ID, OFFSET),
    "a column dropped and added": schema(ID, field(7, "name", "string"), OFFSET),
    "a column that is not null": schema(ID | {"nullable": False}, NAME, OFFSET),
    "partitions": altered(partitionColumns=["id"]),
    "other files": altered(format={"provider": "orc", "options": {}}),
    "columns known by number": altered(configuration={"delta.columnMapping.mode": "id"}),
    "columns known by name": altered(configuration={"delta.columnMapping.mode": "none"}),
    "a struct": schema(ID, NAME | {"type": {"type": "struct", "fields": []}}, OFFSET),
    "a feature": {
        "protocol": protocol_action() | {"readerFeatures": ["deletionVectors", "typeWidening"]}
    },
    "a later protocol": {"protocol": protocol_action() | {"minReaderVersion": 4}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_table_that_was_altered_in_between(path: Path, change: dict[str, Any]) -> None:
    append_entry(path, 4, [{"commitInfo": {"operation": "ALTER"}}, change])

    assert not is_known(path, 2, 4)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_table_that_was_altered_in_between_and_back(path: Path, change: dict[str, Any]) -> None:
    append_entry(path, 4, [{"commitInfo": {"operation": "ALTER"}}, change])
    back = [{"protocol": protocol_action()}, altered()]
    append_entry(path, 5, [{"commitInfo": {"operation": "ALTER"}}, *back])

    assert not is_known(path, 3, 5)


UNREADABLE = ("partitions", "other files", "columns known by number", "a struct", "a feature")


@pytest.mark.parametrize("change", UNREADABLE)
def test_a_table_that_is_not_readable_in_either_version(path: Path, change: str) -> None:
    append_entry(path, 4, [{"commitInfo": {"operation": "ALTER"}}, CHANGES[change]])
    append_entry(path, 5, [{"commitInfo": {"operation": "WRITE"}}])

    assert not is_known(path, 4, 5)


@pytest.mark.parametrize(
    "change",
    [schema(ID, NAME), schema(ID, NAME, OFFSET, field(4, "more", "date")), altered(name="t")],
    ids=["another column dropped", "a column added", "a name given"],
)
def test_a_table_that_was_altered_where_it_does_not_matter(
    path: Path, change: dict[str, Any]
) -> None:
    append_entry(path, 4, [{"commitInfo": {"operation": "ALTER"}}, change])

    assert is_known(path, 2, 4)


def test_a_column_that_is_not_there(path: Path) -> None:
    assert changed_rows(str(path), 2, 3, ["id", "nam"], MANY) is None


def test_a_restored_file_that_was_vacuumed_meanwhile(path: Path) -> None:
    committer = Committer(str(path))
    (first, *_) = committer.open().files
    left = {0, 1, 2, 3, 4} - set(committer.deleted_rows(committer.open().files[first]))
    delete(committer, first, *left)
    restore(path, 3)
    (path / first).unlink()

    assert not is_known(path, 4, 5)


def test_a_store_that_does_not_answer_is_no_reason_to_read_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_store: LocalStore, _name: str) -> bytes:
        raise StoreError("no answer")

    monkeypatch.setattr(LocalStore, "read", silent)

    with pytest.raises(StoreError, match="no answer"):
        is_known(path)
