"""Small files are made one beside other commits, and no reader sees another row for it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint
from cdc.lake.commit import combined as combining_module
from cdc.lake.commit import committer as committer_module
from cdc.lake.commit.combined import Combined, CombineError
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.table.positions import position
from tests.unit.lake.commit.small_table import (
    COLUMNS,
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


def combine(committer: Committer, paths: Sequence[str]) -> Combined:
    files = committer.open().files
    return committer.combining([files[path] for path in paths])()


def place(committer: Committer, combined: Combined, offset: int = 9) -> int | None:
    committer.open()
    return committer.take_place(combined, at(offset))


def delete(committer: Committer, path: str, *numbers: int) -> None:
    committer.commit(rows(committer, []), {path: numbers}, at(9))


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


def test_rows_that_are_deleted_meanwhile_stay_deleted(tmp_path: Path) -> None:
    committer = make(tmp_path)
    first, second, third = (add(committer, range(start, start + 5)) for start in (0, 5, 10))
    delete(committer, first, 1)
    delete(committer, second, 0, 2)
    combined = combine(committer, [first, second, third])
    delete(committer, first, 0, 3)
    delete(committer, second, 4)
    delete(committer, third, 0, 1, 2, 3, 4)  # leaves the table
    fourth = add(committer, [99])

    place(committer, combined)

    assert ids(tmp_path) == [2, 4, 6, 8, 99]
    assert set(committer.open().files) == {combined.file.path, fourth}


@settings(max_examples=10, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    earlier=st.sets(st.integers(0, 23)),
    later=st.sets(st.integers(0, 23)),
)
def test_random_deletes_before_and_meanwhile(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], earlier: set[int], later: set[int]
) -> None:
    path = tmp_path_factory.mktemp("t")
    committer = make(path)
    places: dict[int, tuple[str, int]] = {}
    for start, size in enumerate(sizes):
        name = add(committer, range(10 * start, 10 * start + size))
        places |= {10 * start + number: (name, number) for number in range(size)}
    keys = sorted(places)

    def delete_all(numbers: set[int]) -> None:
        deleted: dict[str, list[int]] = {}
        for number in numbers:
            if number < len(keys) and keys[number] in places:
                name, row = places.pop(keys[number])
                deleted.setdefault(name, []).append(row)
        committer.commit(rows(committer, []), deleted, at(9))

    delete_all(earlier)
    left = list(committer.open().files)
    combined = combine(committer, left) if left else None
    delete_all(later)
    if combined is not None:
        place(committer, combined)

    assert ids(path) == sorted(places)


def test_files_without_rows_leave_nothing_behind(tmp_path: Path) -> None:
    committer = make(tmp_path)
    paths = [add(committer, range(3)), add(committer, range(3, 6))]
    combined = combine(committer, paths)
    for path in paths:
        delete(committer, path, 0, 1, 2)

    assert place(committer, combined) is None
    assert not committer.open().files
    assert position(str(tmp_path)) == at(9)


def test_rows_that_are_back_are_not_lost(tmp_path: Path) -> None:
    """As after a RESTORE: the combined file was made without them."""
    committer = make(tmp_path)
    paths = [add(committer, range(3)), add(committer, range(3, 6))]
    delete(committer, paths[0], 1)
    combined = combine(committer, paths)
    removed, added = actions(tmp_path, 3)[1]["remove"], actions(tmp_path, 1)[1]["add"]
    vector = actions(tmp_path, 3)[2]["add"]["deletionVector"]
    info = {"commitInfo": {"operation": "RESTORE", "userMetadata": at(9).metadata()}}
    restore = [info, {"remove": removed | {"deletionVector": vector}}, {"add": added}]
    append_entry(tmp_path, 4, restore)

    with pytest.raises(CombineError, match="are back"):
        place(committer, combined)

    assert ids(tmp_path) == [*range(6)]


def test_a_table_that_is_altered_meanwhile_keeps_its_files(tmp_path: Path) -> None:
    committer = make(tmp_path)
    combined = combine(committer, [add(committer, [1]), add(committer, [2])])
    info = {"commitInfo": {"operation": "ADD COLUMNS", "userMetadata": at(9).metadata()}}
    altered = metadata_action({**COLUMNS, "more": "long"})
    append_entry(tmp_path, 3, [info, {"metaData": altered}])

    with pytest.raises(CombineError, match="altered"):
        place(committer, combined)

    assert len(committer.open().files) == 2


def test_a_combined_file_that_was_vacuumed_takes_no_place(tmp_path: Path) -> None:
    """It belongs to no version while it waits: VACUUM may delete it after the retention."""
    committer = make(tmp_path)
    combined = combine(committer, [add(committer, [1]), add(committer, [2])])
    (tmp_path / combined.file.path).unlink()

    with pytest.raises(CombineError, match="VACUUM"):
        place(committer, combined)

    assert ids(tmp_path) == [1, 2]


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


def test_a_foreign_commit_in_between_is_a_conflict(tmp_path: Path) -> None:
    committer, other = make(tmp_path), Committer(str(tmp_path))
    combined = combine(committer, [add(committer, [1]), add(committer, [2])])
    committer.open()
    other.commit(rows(other, [3]), {}, at(3))

    with pytest.raises(CdcError) as raised:
        committer.take_place(combined, at(2))

    assert raised.value.kind is ErrorKind.CONFLICT
    assert position(str(tmp_path)) == at(3)


class KilledError(BaseException):
    """The process is killed here."""


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.BEFORE_COMBINED_WRITE,
        Failpoint.AFTER_COMBINED_WRITE,
        Failpoint.AFTER_VECTORS_WRITE,
        Failpoint.BEFORE_ENTRY_PUT,
        Failpoint.AFTER_ENTRY_PUT,
    ],
)
def test_a_kill_leaves_the_rows_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Failpoint
) -> None:
    committer = make(tmp_path)
    paths = [add(committer, range(3)), add(committer, range(3, 6))]

    def killed(reached: Failpoint) -> None:
        if reached is point:
            raise KilledError

    def both() -> None:
        combined = combine(committer, paths)
        delete(committer, paths[0], 1)
        monkeypatch.setattr(committer_module, "reach", killed)
        place(committer, combined)

    monkeypatch.setattr(combining_module, "reach", killed)
    with pytest.raises(KilledError):
        both()
    monkeypatch.undo()

    again = Committer(str(tmp_path))
    deleted = [] if "combined" in point else [1]
    assert ids(tmp_path) == [n for n in range(6) if n not in deleted]
    place(again, combine(again, list(again.open().files)))
    assert ids(tmp_path) == [n for n in range(6) if n not in deleted]
    assert len(again.open().files) == 1


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
