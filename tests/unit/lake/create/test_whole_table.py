"""A table of given rows takes the place of what was there in one commit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc.errors import CdcError
from cdc.lake.create import whole_table
from cdc.lake.create.whole_table import replace_table
from cdc.lake.files.local import LocalStore
from tests.duckdb_reader import duckdb_with_delta

PROPERTIES: Final = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


def field(name: str, of: object) -> dict[str, Any]:
    return {"name": name, "type": of, "nullable": True, "metadata": {}}


FIELDS: Final = [
    field("id", "long"),
    field("names", {"type": "array", "elementType": "string", "containsNull": True}),
]
ROWS: Final = pa.table({"id": [1, 2, None], "names": [["a", None], [], None]})


def by_delta_rs(path: str, version: int | None = None) -> list[dict[str, Any]]:
    table = DeltaTable(path, version=version)
    found = QueryBuilder().register("t", table).execute("SELECT * FROM t ORDER BY 1")
    rows: list[dict[str, Any]] = pa.table(found.read_all()).to_pylist()
    return rows


def by_duckdb(path: str) -> list[dict[str, Any]]:
    with duckdb_with_delta() as database:
        found = database.execute(f"SELECT * FROM delta_scan('{path}') ORDER BY 1")
        rows: list[dict[str, Any]] = found.to_arrow_table().to_pylist()
    return rows


def test_a_new_table_has_the_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    assert replace_table(path, FIELDS, PROPERTIES, ROWS, "a mark") == 0

    assert by_delta_rs(path) == by_duckdb(path) == ROWS.to_pylist()
    assert DeltaTable(path).history(1)[0]["userMetadata"] == "a mark"


def test_other_columns_take_the_place_of_the_old(tmp_path: Path) -> None:
    """Readers of the old version go on with its columns; the table is still the same one."""
    path = str(tmp_path / "t")
    replace_table(path, FIELDS, PROPERTIES, ROWS, "")
    before = DeltaTable(path).metadata().id
    other = pa.table({"id": ["x"], "at": pa.array([0], pa.timestamp("us"))})

    version = replace_table(
        path, [field("id", "string"), field("at", "timestamp_ntz")], PROPERTIES, other, ""
    )

    assert (version, DeltaTable(path).metadata().id) == (1, before)
    assert by_delta_rs(path) == by_duckdb(path) == other.to_pylist()
    assert by_delta_rs(path, 0) == ROWS.to_pylist()


def test_a_plain_table_gets_the_features(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"old": [1]}))

    replace_table(path, FIELDS, PROPERTIES, ROWS, "")

    assert DeltaTable(path).protocol().min_reader_version == 3
    assert by_delta_rs(path) == by_duckdb(path) == ROWS.to_pylist()
    assert by_delta_rs(path, 0) == [{"old": 1}]


def test_many_rows_become_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is small enough to be written again without Spark."""
    monkeypatch.setattr(whole_table, "FILE_BYTES", 1000)
    monkeypatch.setattr(whole_table, "_BATCH_ROWS", 100)
    monkeypatch.setattr("cdc.lake.commit.row_files.GROUP_BYTES", 1)
    path, rows = str(tmp_path / "t"), pa.table({"id": range(1000)})

    replace_table(path, FIELDS[:1], PROPERTIES, rows, "")

    assert by_delta_rs(path) == rows.to_pylist()


@pytest.mark.parametrize("before", [True, False])
def test_no_rows_are_an_empty_table(tmp_path: Path, *, before: bool) -> None:
    path = str(tmp_path / "t")
    if before:
        replace_table(path, FIELDS, PROPERTIES, ROWS, "")

    replace_table(path, FIELDS, PROPERTIES, ROWS.slice(0, 0), "")

    assert by_delta_rs(path) == by_duckdb(path) == []


def test_rows_of_another_type_are_refused_and_nothing_is_there(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    replace_table(path, FIELDS, PROPERTIES, ROWS, "")
    with pytest.raises(pa.ArrowInvalid):
        replace_table(path, FIELDS[:1], PROPERTIES, pa.table({"id": ["no number"]}), "")

    assert by_delta_rs(path) == ROWS.to_pylist()


def test_a_log_that_cannot_be_read_is_left(tmp_path: Path) -> None:
    path = tmp_path / "t"
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f"{0:020d}.json").write_text("no JSON")
    with pytest.raises(CdcError, match="cannot be read"):
        replace_table(str(path), FIELDS, PROPERTIES, ROWS, "")


def test_all_that_an_entry_names_is_durable_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a machine that fails leaves the old table or the new one."""
    seen: list[str] = []
    for name in ("write", "settle", "put_if_absent"):
        does = getattr(LocalStore, name)

        def noted(*arguments: Any, name: str = name, does: Callable[..., Any] = does) -> Any:  # noqa: ANN401
            seen.append(name)
            return does(*arguments)

        monkeypatch.setattr(LocalStore, name, noted)

    replace_table(str(tmp_path / "t"), FIELDS, PROPERTIES, ROWS, "")

    assert seen[-2:] == ["settle", "put_if_absent"]
