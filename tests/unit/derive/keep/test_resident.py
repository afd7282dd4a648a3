"""What is kept between cuts is what the lake has: followed, read again, or given up."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.engine.input import Input
from cdc.derive.step.difference import GONE
from cdc.derive.step.resident import ResidentTables, TableAt, stored_rows
from cdc.errors import CdcError
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId

TABLE, OWN = TableId("shop", "rows"), TableId("marts", "own")
SCHEMA: Final = pa.schema(
    [("id", pa.int64()), ("x", pa.float64()), ("names", pa.list_(pa.string()))]
)
HANDLES: Final = pa.schema([(ROW_HASH, pa.string()), (COPY, pa.int64()), ("who", pa.string())])
Row = Mapping[str, Any]
ROWS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 2) | st.none(),
            "x": st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
            "names": st.sampled_from([None, [], ["a"], ["a", None]]),
        }
    ),
    max_size=8,
)


class Lake:
    """One input in several versions, and a derived table of two stored rows."""

    def __init__(self, folder: Path) -> None:
        self.path, self.own = str(folder / "rows"), str(folder / "own")
        self.tables = ResidentTables(256, folder / "scratch")
        rows = [{ROW_HASH: text, COPY: 1, "who": text} for text in "ab"]
        write_deltalake(self.own, pa.Table.from_pylist(rows, HANDLES))

    def write(self, rows: Sequence[Row]) -> None:
        write_deltalake(self.path, pa.Table.from_pylist(list(rows), SCHEMA), mode="overwrite")

    def append(self, *rows: Row) -> None:
        write_deltalake(self.path, pa.Table.from_pylist(list(rows), SCHEMA), mode="append")

    def stored(self) -> TableAt:
        opened = DeltaTable(self.own)
        at = Input(self.own, opened.version())
        return TableAt(table=OWN, at=at, opened=opened, columns=(ROW_HASH, COPY, "who"))

    def read(self, *columns: str, work: str = "") -> "Counter[str]":
        """Return the rows of the input that a step sees; it does some work after that."""
        opened = DeltaTable(self.path)
        at = Input(self.path, opened.version())
        names = columns or tuple(SCHEMA.names)
        wanted = TableAt(table=TABLE, at=at, opened=opened, columns=names)
        with self.tables.at([wanted], self.stored()) as database:
            found = texts(database, f"SELECT * FROM {named(TABLE)}")
            if work:
                database.run(work)
        return found

    def read_stored(self) -> "Counter[str]":
        with self.tables.at([], self.stored()) as database:
            return texts(database, f"SELECT who FROM {stored_rows(OWN)}")


def texts(database: Calculator, query: str) -> "Counter[str]":
    return Counter(repr(list(row.values())) for row in database.rows(query).to_pylist())


def plain(rows: Sequence[Row]) -> "Counter[str]":
    return Counter(repr([row[name] for name in SCHEMA.names]) for row in rows)


def row(number: int, x: float | None = None) -> dict[str, Any]:
    return {"id": number, "x": x, "names": None}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@settings(max_examples=15, deadline=None)
@given(versions=st.lists(ROWS, min_size=2, max_size=4))
def test_it_has_the_rows_of_every_version(
    tmp_path_factory: pytest.TempPathFactory, versions: list[list[Row]]
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    for rows in versions:
        lake.write(rows)
        assert lake.read() == plain(rows)


def test_what_has_not_changed_is_not_read_again(lake: Lake) -> None:
    lake.write([row(1), row(2), row(2)])
    lake.read()
    for file in Path(lake.path).glob("*.parquet"):
        file.write_bytes(b"nothing that can be read")
    lake.append(row(3))

    assert lake.read() == plain([row(1), row(2), row(2), row(3)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([row(1), row(1), row(1), row(2)], [row(1), row(2)]),
        ([row(1, 0.0), row(1, -0.0), row(2)], [row(1, -0.0), row(2)]),  # equal for the engine
    ],
)
def test_of_rows_that_are_equal_as_many_go_as_are_removed(
    lake: Lake, before: list[Row], after: list[Row]
) -> None:
    lake.write(before)
    lake.read()
    lake.write(after)

    assert lake.read() == plain(after)


def test_each_change_is_followed_by_its_own_rows(lake: Lake) -> None:
    kept = []
    for number in range(4):
        kept.append(row(number))
        lake.append(row(number))

        assert lake.read() == plain(kept)


def test_a_table_that_was_made_anew_is_read_again(lake: Lake) -> None:
    lake.write([row(1)])
    lake.write([row(1)])
    lake.read()
    for file in Path(lake.path).rglob("*"):
        if file.is_file():
            file.unlink()
    lake.write([row(7)])
    lake.write([row(8)])

    assert lake.read() == plain([row(8)])


def test_old_files_are_gone_so_all_is_read(lake: Lake) -> None:
    lake.write([row(1), row(2)])
    lake.read()
    lake.write([row(2), row(3)])
    DeltaTable(lake.path).vacuum(0, enforce_retention_duration=False, dry_run=False)

    assert lake.read() == plain([row(2), row(3)])


def test_a_step_that_needs_more_columns_gets_them(lake: Lake) -> None:
    lake.write([row(1, 0.5)])

    assert lake.read("id") == Counter(["[1]"])
    assert lake.read("x") == Counter(["[1, 0.5]"])
    assert lake.read("id") == Counter(["[1, 0.5]"])


def test_what_a_step_does_is_undone(lake: Lake) -> None:
    lake.write([row(1), row(2)])
    lake.read(work=f"DELETE FROM {named(TABLE)}")

    assert lake.read(work="CREATE TABLE made AS SELECT 1 AS n") == plain([row(1), row(2)])
    assert lake.read(work="CREATE TABLE made AS SELECT 1 AS n") == plain([row(1), row(2)])


def test_after_a_step_that_failed_all_is_read_again(lake: Lake) -> None:
    lake.write([row(1)])
    with pytest.raises(CdcError):
        lake.read(work="SELECT error('no')")

    assert lake.read() == plain([row(1)])


def test_stored_rows_follow_what_was_committed(lake: Lake) -> None:
    lake.write([])
    assert lake.read_stored() == Counter(["['a']", "['b']"])
    changes = [
        {ROW_HASH: "c", COPY: 1, "who": "c", "more": 1, GONE: False},
        {ROW_HASH: "a", COPY: 1, "who": None, "more": None, GONE: True},
        {ROW_HASH: "b", COPY: 2, "who": "b", "more": 1, GONE: False},
    ]
    lake.tables.committed(OWN, 1, pa.Table.from_pylist(changes))
    for file in Path(lake.own).glob("*.parquet"):
        file.write_bytes(b"nothing that can be read")
    write_deltalake(lake.own, pa.Table.from_pylist([], HANDLES), mode="append")

    assert lake.read_stored() == Counter(["['b']", "['b']", "['c']"])


def test_stored_rows_at_another_version_are_read_again(lake: Lake) -> None:
    lake.write([])
    lake.read_stored()
    write_deltalake(lake.own, pa.Table.from_pylist([], HANDLES), mode="overwrite")

    assert lake.read_stored() == Counter()


def test_tables_that_take_much_memory_are_given_up(lake: Lake) -> None:
    lake.tables.memory_mb = 64
    rows = pa.table(
        {
            "id": pa.array(range(2_000_000), pa.int64()),
            "x": pa.array((float(n * 7919 % 1_000_003) for n in range(2_000_000)), pa.float64()),
            "names": pa.nulls(2_000_000, pa.list_(pa.string())),
        }
    )
    write_deltalake(lake.path, rows)
    opened = DeltaTable(lake.path)
    at = Input(lake.path, 0)
    wanted = TableAt(table=TABLE, at=at, opened=opened, columns=("id", "x"))
    with lake.tables.at([wanted], lake.stored()) as database:
        assert database.values(f"SELECT count(*) FROM {named(TABLE)}") == [(2_000_000,)]

    assert not lake.tables.has(TABLE)


def test_stored_rows_that_take_much_memory_are_given_up_alone(lake: Lake) -> None:
    """Others may need the inputs, and would have to read them again."""
    lake.tables.memory_mb = 64
    digests = pa.array(f"{number:064}" for number in range(800_000))
    ones = pa.array([1] * 800_000, pa.int64())
    write_deltalake(lake.own, pa.table([digests, ones, digests], HANDLES), mode="overwrite")
    lake.write([row(1)])
    lake.read()

    assert lake.tables.has(TABLE)


def test_tables_that_take_little_memory_are_kept(lake: Lake) -> None:
    lake.write([row(1)])
    lake.read()

    assert lake.tables.has(TABLE)
    lake.tables.close()
    assert not lake.tables.has(TABLE)
