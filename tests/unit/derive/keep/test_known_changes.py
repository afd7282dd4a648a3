"""The changed rows of an input are read once for all tables that ask, and are those asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc.derive.engine.input import Input
from cdc.derive.step import known_changes
from cdc.derive.step.known_changes import Known, KnownChanges
from cdc.lake.changed.changed_rows import ChangedRows, changed_rows

MOST: Final = 100


class Table:
    """A table that gets one row more with each version."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.version = -1

    def write(self, mode: str = "append", **columns: list[Any]) -> None:
        schema = "overwrite" if mode == "overwrite" else None
        write_deltalake(self.path, pa.table(columns), mode=mode, schema_mode=schema)  # type: ignore[call-overload]
        self.version += 1

    def at(self, version: int) -> Input:
        return Input(self.path, version)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path / "t")
    for number in (1, 2, 3):
        made.write(id=[number], who=[f"w{number}"], amount=[10 * number])
    return made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the columns of each reading so far."""
    seen: list[tuple[str, ...]] = []

    def noted(
        path: str, old: int, new: int, columns: Sequence[str], most: int
    ) -> ChangedRows | None:
        seen.append(tuple(columns))
        return changed_rows(path, old, new, columns, most)

    monkeypatch.setattr(known_changes, "changed_rows", noted)
    return seen


def rows(found: Known | None, *names: str) -> list[dict[str, Any]]:
    """Return these columns of the added rows, or all."""
    assert found is not None
    assert not len(found.rows.removed)
    added = found.rows.added.select(list(names)) if names else found.rows.added
    listed: list[dict[str, Any]] = added.to_pylist()
    return listed


def test_they_are_read_once_for_whoever_asks_next(
    table: Table, reads: list[tuple[str, ...]]
) -> None:
    """From the second cut on: at the first it is not known who will ask for what."""
    known, asked = KnownChanges(), (["id", "who"], ["amount", "id"])
    for old, new in ((0, 1), (1, 2)):
        found = [rows(known.rows(table.at(old), new, names, MOST), *names) for names in asked]
        number = new + 1
        assert found == [
            [{"id": number, "who": f"w{number}"}],
            [{"amount": 10 * number, "id": number}],
        ]

    assert reads == [("id", "who"), ("id", "who", "amount"), ("id", "who", "amount")]


def test_those_of_other_versions_are_read_again(table: Table) -> None:
    known = KnownChanges()

    assert [row["id"] for row in rows(known.rows(table.at(0), 1, ["id"], MOST))] == [2]
    assert [row["id"] for row in rows(known.rows(table.at(0), 2, ["id"], MOST))] == [2, 3]
    assert [row["id"] for row in rows(known.rows(table.at(1), 2, ["id"], MOST))] == [3]


def test_who_takes_fewer_rows_than_are_known_gets_none(table: Table) -> None:
    known = KnownChanges()

    assert len(rows(known.rows(table.at(0), 2, ["id"], 2))) == 2
    assert known.rows(table.at(0), 2, ["id"], 1) is None


def test_a_column_that_another_has_read_may_be_gone(table: Table) -> None:
    known = KnownChanges()
    rows(known.rows(table.at(0), 1, ["id", "amount"], MOST))
    table.write("overwrite", id=[4], who=["w4"])
    table.write(id=[5], who=["w5"])

    assert rows(known.rows(table.at(3), 4, ["id", "who"], MOST)) == [{"id": 5, "who": "w5"}]


def test_they_can_be_given_up(table: Table, reads: list[tuple[str, ...]]) -> None:
    known = KnownChanges()
    for _ in range(2):
        rows(known.rows(table.at(0), 1, ["id"], MOST))
    known.clear()
    rows(known.rows(table.at(0), 1, ["id"], MOST))

    assert len(reads) == 2
