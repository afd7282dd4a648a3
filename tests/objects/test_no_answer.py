"""A store that does not answer is named as such, by whichever library asks, and breaks no table."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import fs

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.committer import Committer
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.store_of import store_of
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.table.open_version import open_version
from cdc.lake.table.positions import open_table
from cdc.operations.replay.place import refuse_taken
from tests.objects.faults import Fault, Plan, first, share
from tests.objects.server import ObjectServer
from tests.objects.small_lake import StoredLake
from tests.objects.test_commits import add, table
from tests.unit.derive.orders import BY_WHO, ORDERS, PEOPLE, order
from tests.unit.derive.small_lake import rows_of

__all__ = ["table"]

FORBIDDEN = share(1, {Fault.FORBIDDEN: 1.0})


def queried(opened: DeltaTable) -> object:
    return QueryBuilder().register("t", opened).execute("SELECT * FROM t").read_all()


ASKS: dict[str, Callable[[str, DeltaTable], object]] = {
    "delta-rs opens": lambda path, _: open_table(path),
    "delta-rs opens a version": lambda path, _: open_version(path, 0),
    "delta-rs lists commits": lambda _, opened: opened.history(1),
    "delta-rs goes on": lambda _, opened: opened.update_incremental(),
    "delta-rs queries": lambda _, opened: queried(opened),
    "delta-rs deletes": lambda _, opened: opened.delete("id = 1"),
    "Arrow lists": lambda path, _: store_of(path).tree.get_file_info(fs.FileSelector("")),
    "Arrow reads": lambda path, _: store_of(path).tree.open_input_file("a").read(),
    "obstore reads": lambda path, _: store_of(path).read("a"),
}


@pytest.mark.parametrize("name", ASKS)
def test_no_answer_is_unreachable_whoever_asks(
    table: str, objects: ObjectServer, name: str
) -> None:
    add(Committer(table), 1)
    opened = DeltaTable(table)
    objects.faults.follow(FORBIDDEN)

    with pytest.raises(CdcError) as raised, store_errors_named():
        ASKS[name](table, opened)

    assert raised.value.kind is ErrorKind.UNREACHABLE
    assert "AccessDenied" not in str(raised.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda path: DeltaTable(path, version=7),
        lambda path: store_of(path).read("a"),
        lambda path: store_of(path).tree.open_input_file("a"),
        lambda path: queried(DeltaTable(path)),
    ],
)
def test_what_is_not_there_is_no_silence(table: str, ask: Callable[[str], Any]) -> None:
    store_of(table).delete(add(Committer(table), 1))

    with pytest.raises(Exception) as raised, store_errors_named():  # noqa: PT011 - of any library
        ask(table)

    assert not isinstance(raised.value, CdcError)


def test_a_checkpoint_that_is_not_answered_for_breaks_no_table(
    table: str, objects: ObjectServer
) -> None:
    for number in range(1, 4):
        add(Committer(table), number)
    assert Committer(table).checkpoint(3)
    objects.faults.follow(first(9, Fault.FORBIDDEN, "HEAD", ".checkpoint.parquet"))

    with pytest.raises(StoreError):
        Committer(table).open()
    objects.faults.heal()

    assert Committer(table).open().version == 3


@pytest.mark.parametrize(
    "plan",
    [
        FORBIDDEN,
        first(9, Fault.FORBIDDEN, "PUT", "marts/by_who"),
        first(9, Fault.FORBIDDEN, "GET", "shop/orders"),
    ],
)
def test_a_derived_table_does_not_stop_for_a_store(
    lake: str, objects: ObjectServer, tmp_path: Path, plan: Plan
) -> None:
    stored = StoredLake(tmp_path, {"orders": ORDERS, "people": PEOPLE}, lake=lake)
    stored.set(orders=[order(1, "a")], people=[])
    with closing(stored.keep(BY_WHO)) as kept:
        kept.entries(stored.row())
        stored.set(orders=[order(1, "a"), order(2, "b")])
        row = stored.row()
        objects.faults.follow(plan)
        with pytest.raises(CdcError) as raised, store_errors_named():
            kept.entries(row)
        objects.faults.heal()
        (entry,) = kept.entries(row)

    assert raised.value.kind is ErrorKind.UNREACHABLE
    assert entry.state == "streaming"
    assert [found[:2] for found in rows_of(entry)] == [("a", 1), ("b", 1)]


def test_a_rebuild_takes_no_place_at_which_something_is(table: str, objects: ObjectServer) -> None:
    with pytest.raises(CdcError, match="this path exists already"):
        refuse_taken(table)
    refuse_taken(f"{table}-copy")
    objects.faults.follow(FORBIDDEN)
    with pytest.raises(CdcError) as raised:
        refuse_taken(f"{table}-copy")
    assert raised.value.kind is ErrorKind.UNREACHABLE


def test_delta_rs_asks_again_for_as_long_as_everybody(table: str, objects: ObjectServer) -> None:
    objects.faults.follow(first(12, Fault.BUSY, "GET", "_last_checkpoint"))

    opened = open_table(table)

    assert opened is not None
    assert opened.version() == 0
    assert len(objects.faults.met) == 12
