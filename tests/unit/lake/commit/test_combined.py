"""Small files are made one beside other commits, and no reader sees another row for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cdc.lake.commit import combined as combining_module
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.table.positions import position
from tests.unit.lake.commit.combining import combine, delete, place
from tests.unit.lake.commit.small_table import (
    actions,
    add,
    append_entry,
    at,
    ids,
    make,
    metadata_action,
    rows,
    seen,
)


def test_files_become_one_without_their_deleted_rows(tmp_path: Path) -> None:
    committer = make(tmp_path)
    paths = [add(committer, range(start, start + 4)) for start in (0, 4, 8)]
    delete(committer, paths[0], 0, 2)
    delete(committer, paths[2], 3)
    before = seen(tmp_path)

    version = place(committer, combine(committer, paths))

    assert version == 6
    assert seen(tmp_path) == before == seen(tmp_path, 5)
    (file,) = committer.open().files.values()
    assert (file.vector, file.records) == (None, 9)
    assert position(str(tmp_path)) == at(9)
    assert ids(tmp_path, 3) == [*range(12)]


def test_the_commit_is_an_optimize_that_changes_no_row(tmp_path: Path) -> None:
    committer = make(tmp_path)
    paths = [add(committer, [number]) for number in range(3)]
    delete(committer, paths[0], 0)
    paths.append(add(committer, range(5, 9)))
    delete(committer, paths[3], 1)

    version = place(committer, combine(committer, paths[1:]))

    (commit,) = DeltaTable(str(tmp_path)).history(1)
    assert commit["operation"] == "OPTIMIZE"
    counts = commit["operationMetrics"]
    assert (counts["numRemovedFiles"], counts["numAddedFiles"]) == ("3", "1")
    assert counts["numDeletionVectorsRemoved"] == "1"
    assert version is not None
    changes = [next(iter(line.values())) for line in actions(tmp_path, version)[1:]]
    assert [change["dataChange"] for change in changes] == [False] * 4


def test_files_without_rows_leave_nothing_behind(tmp_path: Path) -> None:
    committer = make(tmp_path)
    paths = [add(committer, range(3)), add(committer, range(3, 6))]
    combined = combine(committer, paths)
    for path in paths:
        delete(committer, path, 0, 1, 2)

    assert place(committer, combined) is None
    assert not committer.open().files
    assert position(str(tmp_path)) == at(9)


def test_a_column_that_is_younger_than_a_file_is_null_in_it(tmp_path: Path) -> None:
    committer = make(tmp_path)
    old = add(committer, [1])
    info = {"commitInfo": {"operation": "CHANGE", "userMetadata": at(1).metadata()}}
    fields = {"id": "integer", "name": "string", "_cdc_offset": "long", "more": "long"}
    append_entry(tmp_path, 2, [info, {"metaData": metadata_action(fields)}])
    new = rows(committer, [2])
    committer.commit(new.set_column(3, "more", pa.array([7], pa.int64())), {}, at(2))
    (young,) = set(committer.open().files) - {old}

    place(committer, combine(committer, [old, young]))

    assert [(row["id"], row["more"]) for row in seen(tmp_path)] == [(1, None), (2, 7)]


def _short(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(1), path)


def _other_type(path: Path) -> None:
    found = pq.read_table(path)
    pq.write_table(found.set_column(0, "c-1", found.column(0).cast(pa.int64())), path)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (Path.unlink, "cannot be read"),
        (lambda path: path.write_bytes(b"PAR1"), "cannot be read"),
        (_short, "has 2 rows, in the log 3"),
        (_other_type, "has int64 where the table has int32"),
    ],
)
def test_a_file_that_is_not_what_the_log_says_is_left_alone(
    tmp_path: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    committer = make(tmp_path)
    paths = [add(committer, [1]), add(committer, range(3))]
    spoil(tmp_path / paths[1])
    before = {file.name for file in tmp_path.iterdir()}

    with pytest.raises(CombineError, match=reason):
        combine(committer, paths)

    assert {file.name for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("path", ["/elsewhere/part.parquet", "file:///elsewhere/part.parquet"])
def test_a_file_outside_the_table_is_left_alone(tmp_path: Path, path: str) -> None:
    committer = make(tmp_path)
    add(committer, [1])
    elsewhere = actions(tmp_path, 1)[1]["add"] | {"path": path}
    info = {"commitInfo": {"operation": "CLONE", "userMetadata": at(1).metadata()}}
    append_entry(tmp_path, 2, [info, {"add": elsewhere}])

    with pytest.raises(CombineError, match="outside the table"):
        combine(committer, [path])


def test_only_so_much_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committer = make(tmp_path)
    paths = [add(committer, range(10 * n, 10 * n + 10)) for n in range(4)]
    monkeypatch.setattr(combining_module, "MEMORY_BYTES", 1)

    place(committer, combine(committer, paths))

    assert ids(tmp_path) == [*range(40)]
    assert len(committer.open().files) == 3


def test_each_column_of_a_wide_table_is_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table has up to 1,600 columns: their square took this process seconds."""
    asked: list[str] = []

    class Asked(pq.ParquetFile):  # type: ignore[misc] # pyarrow is untyped
        def read(self, **options: Any) -> Any:  # noqa: ANN401 - stands for a table
            return Table(super().read(**options))

    class Table:
        def __init__(self, rows: pa.Table) -> None:
            self.rows = rows

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            asked.append(name)
            return getattr(self.rows, name)

    names = {f"c{number}": "string" for number in range(100)}
    committer = make(tmp_path, {**names, "_cdc_offset": "long"})
    schema = arrow_schema(committer.open().metadata)
    for offset in range(2):
        line = dict.fromkeys(names, "v") | {"_cdc_offset": offset}
        committer.open()
        committer.commit(pa.Table.from_pylist([line], schema=schema), {}, at(offset))
    monkeypatch.setattr(pq, "ParquetFile", Asked)

    combined = committer.combining([*committer.open().files.values()])()

    assert combined.file.records == 2
    assert len(asked) < 2 * 10
