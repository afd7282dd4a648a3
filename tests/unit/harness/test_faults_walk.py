"""The walk along the ledger finds the damage that a kill might do, here done by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import BULK, COLUMNS, PARTS, RING, THOUSANDS, TOTAL
from tests.faults.bank.walk import Walk

ROWS: Final[dict[str, pa.Table]] = {
    "accounts": pa.table({"id": [1, 2], "balance": [TOTAL - 7, 7]}),
    **{name: pa.table({"mark": [1, 2]}) for name in ("debits", "credits", "audit")},
    "counters": pa.table({"name": [1, 2], "n": [5, 6]}),
    "ring": pa.table({"id": range(1, RING + 1), "name": range(RING, 0, -1)}),
    "emptied": pa.table({"part": range(1, PARTS + 1), "filling": [3] * PARTS}),
    "bulk": pa.table({"id": range(1, BULK + 1), "change": [4] * BULK}),
    "thousands": pa.table({"id": range(1, THOUSANDS + 1), "change": [5] * THOUSANDS}),
    "broad": pa.table({"id": [1, 2], **{name: [6, 6] for name in COLUMNS}}),
    "reshaped": pa.table({"id": [1, 2], "n": [7, 7], "shape": [7, 7]}),
}
Wrong = Callable[["Lake"], object]


class Lake:
    """Writes a ledger and its tables by delta-rs; the LSN of each cut equals its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "lake"
        self.walk = Walk(Armed(folder=folder, servers={}))
        self.walk.commits.update({1: (-2, -1), 2: (0, 1), 3: (90, 95)})
        for name, rows in ROWS.items():
            self.put(name, rows)

    def put(self, name: str, rows: pa.Table) -> None:
        write_deltalake(str(self.folder / "bank" / name), rows, mode="overwrite")

    def publish(self, cut: int, lsn: int | None = None) -> None:
        row = {"cut": cut, "lsn": cut if lsn is None else lsn, "tables": self._entries()}
        table = pa.Table.from_pylist([row])
        write_deltalake(str(self.folder / "_wal2lake" / "ledger"), table, mode="append")

    def _entries(self) -> list[dict[str, object]]:
        return [self._entry(str(self.folder / "bank" / name), f"bank.{name}") for name in ROWS]

    def _entry(self, path: str, table: str) -> dict[str, object]:
        version = DeltaTable(path).version()
        return {"table": table, "path": path, "version": version, "state": "streaming"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    correct = Lake(tmp_path)
    correct.publish(1)
    correct.walk.go_on()
    return correct


def marks(lake: Lake, found: list[int]) -> None:
    for name in ("debits", "credits", "audit"):
        lake.put(name, pa.table({"mark": found}))


def changed(rows: pa.Table, name: str) -> pa.Table:
    """Make the last row that of a later transaction."""
    values = rows.column(name).to_pylist()
    return rows.set_column(1, name, pa.array([*values[:-1], 99]))


def with_key(rows: pa.Table, key: int) -> pa.Table:
    """Give the last row a key that only a part of its transaction has."""
    return rows.set_column(0, "id", pa.array([*rows.column("id").to_pylist()[:-1], key]))


def rewritten(lake: Lake) -> None:
    DeltaTable(str(lake.folder / "_wal2lake" / "ledger")).update(updates={"lsn": "lsn + 1"})


def test_a_lake_that_is_right_is_walked_to_its_end(lake: Lake) -> None:
    lake.put("counters", pa.table({"name": [1, 2], "n": [5, 9]}))
    lake.publish(2)

    lake.walk.go_on()

    assert (lake.walk.walked, lake.walk.versions) == (2, 2 * len(ROWS))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda lake: lake.put("accounts", ROWS["accounts"].slice(0, 1)), "balances"),
        (lambda lake: lake.put("credits", pa.table({"mark": [1]})), "in part"),
        (lambda lake: lake.put("audit", pa.table({"mark": [1, 2, 2]})), "in part"),
        (lambda lake: lake.put("debits", pa.table({"mark": [1, 2, 2]})), "twice"),
        (lambda lake: marks(lake, [1]), "before its LSN"),
        (lambda lake: marks(lake, [1, 2, 3]), "after its LSN"),
        (lambda lake: lake.put("counters", pa.table({"name": [1, 2], "n": [5, 4]})), "lower"),
        (lambda lake: lake.put("counters", pa.table({"name": [1], "n": [9]})), "lower"),
        (lambda lake: lake.put("counters", pa.table({"name": [1, 2, 2], "n": [5, 6, 6]})), "twice"),
        (lambda lake: lake.put("ring", ROWS["ring"].slice(1)), "ring"),
        (lambda lake: lake.put("ring", ROWS["ring"].slice(0, 0)), "ring"),
        (lambda lake: lake.put("ring", with_key(ROWS["ring"], -1)), "ring"),
        (lambda lake: lake.put("emptied", ROWS["emptied"].slice(1)), "parts of a filling"),
        (lambda lake: lake.put("emptied", ROWS["emptied"].slice(0, 0)), "parts of a filling"),
        (lambda lake: lake.put("emptied", changed(ROWS["emptied"], "filling")), "in part"),
        (lambda lake: lake.put("bulk", ROWS["bulk"].slice(1)), "rows of the bulk"),
        (lambda lake: lake.put("bulk", changed(ROWS["bulk"], "change")), "in part"),
        (lambda lake: lake.put("thousands", ROWS["thousands"].slice(1)), "rows of the thousands"),
        (lambda lake: lake.put("thousands", changed(ROWS["thousands"], "change")), "in part"),
        (lambda lake: lake.put("broad", changed(ROWS["broad"], COLUMNS[0])), "in part"),
        (lambda lake: lake.put("reshaped", changed(ROWS["reshaped"], "n")), "in part"),
    ],
)
def test_a_version_that_breaks_a_promise_is_seen(lake: Lake, wrong: Wrong, said: str) -> None:
    wrong(lake)
    lake.publish(2)

    with pytest.raises(AssertionError, match=said):
        lake.walk.go_on()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda lake: lake.publish(1), "there twice"),
        (lambda lake: lake.publish(3), "missing"),
        (lambda lake: lake.publish(2, lsn=0), "before the one before"),
        (rewritten, "changed after they were published"),
    ],
)
def test_a_ledger_that_is_wrong_is_seen(lake: Lake, wrong: Wrong, said: str) -> None:
    wrong(lake)

    with pytest.raises(AssertionError, match=said):
        lake.walk.go_on()
