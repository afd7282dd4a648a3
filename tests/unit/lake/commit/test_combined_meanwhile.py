"""What happens to a table while small files of it become one is in it afterwards."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint
from cdc.lake.commit import combined as combining_module
from cdc.lake.commit import committer as committer_module
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.committer import Committer
from cdc.lake.table.positions import position
from tests.unit.lake.commit.combining import combine, delete, place
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
)


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
