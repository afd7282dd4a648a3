"""Tests of ``cdc.read`` and ``cdc.cut`` without Spark: one table at one published cut."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import cdc
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_under, table_under
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.tables import TableId

ORDERS = TableId("shop", "orders")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def publish(lake: Path, cut: int, state: str = "streaming") -> LedgerRow:
    path = table_under(str(lake), ORDERS)
    entry = TableEntry(
        table=str(ORDERS),
        path="/where/the/job/has/it",
        version=DeltaTable(path).version(),
        offset=cut,
        state=state,
        delta_id=str(DeltaTable(path).metadata().id),
    )
    row = LedgerRow(
        cut=cut,
        epoch=1,
        lsn=cut * 16,
        committed_at=NOON + timedelta(minutes=cut),
        published_at=NOON,
        transactions=1,
        tables=(entry,),
    )
    Ledger(ledger_under(str(lake))).append(row)
    return row


def put(lake: Path, *ids: int) -> None:
    write_deltalake(table_under(str(lake), ORDERS), pa.table({"id": list(ids)}), mode="append")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Create a lake with two cuts, and the rows of a third that is not published."""
    for cut in (1, 2):
        put(tmp_path / "lake", cut)
        publish(tmp_path / "lake", cut)
    put(tmp_path / "lake", 3)
    return tmp_path / "lake"


def ids(lake: Path, at: str | int | datetime | LedgerRow | None = None) -> list[int]:
    reader = cdc.read("shop.orders", at=at, lake=lake)
    assert isinstance(reader, pa.RecordBatchReader)
    return sorted(reader.read_all().column("id").to_pylist())


def test_the_newest_cut_is_read_without_unpublished_rows(lake: Path) -> None:
    assert ids(lake) == ids(lake, "latest") == [1, 2]


def test_every_way_to_name_a_cut(lake: Path) -> None:
    first = (1, "1", "0/1F", NOON + timedelta(minutes=1), "2026-01-31T12:01:59Z")

    assert [ids(lake, at) for at in first] == [[1]] * len(first)


def test_a_cut_is_one_moment_for_many_reads(lake: Path) -> None:
    cut = cdc.cut(lake=lake)
    publish(lake, 3)

    assert cut.cut == 2
    assert ids(lake, cut) == [1, 2]
    assert ids(lake) == [1, 2, 3]


def test_a_lake_that_was_moved_is_read_where_it_is(lake: Path) -> None:
    shutil.move(lake, lake.parent / "elsewhere")

    assert ids(lake.parent / "elsewhere") == [1, 2]


def test_the_configuration_file_names_the_lake(lake: Path) -> None:
    file = lake.parent / "wal2lake.yaml"
    file.write_text("source: {tables: [shop.*]}\nlake: {path: lake}\n")

    assert cdc.read("shop.orders", config=file).read_all().num_rows == 2


@pytest.mark.parametrize("state", ["stopped", "degraded", "resnapshotting", "snapshotting"])
def test_a_flagged_table_is_read_only_on_request(lake: Path, state: str) -> None:
    publish(lake, 3, state)

    with pytest.raises(CdcError, match=r"shop.orders does not equal the source at cut 3") as caught:
        cdc.read("shop.orders", lake=lake)
    assert caught.value.kind is ErrorKind.TABLE_STOPPED
    assert cdc.read("shop.orders", lake=lake, flagged=True).read_all().num_rows == 3
    assert ids(lake, 2) == [1, 2]


def test_a_missing_table_lake_cut_or_version_is_named(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(CdcError, match=r"cut 2 has no table shop.none") as caught:
        cdc.read("shop.none", lake=lake)
    assert "shop.orders" in caught.value.remedy
    with pytest.raises(CdcError, match="nothing is published yet in the lake"):
        cdc.read("shop.orders", lake=tmp_path / "none")
    with pytest.raises(CdcError, match="no cut at 9"):
        cdc.read("shop.orders", at=9, lake=lake)
    gone = replace(cdc.cut(lake=lake).tables[0], version=99)
    with pytest.raises(CdcError, match=r"version 99 of .* no longer exists"):
        cdc.read("shop.orders", at=replace(cdc.cut(lake=lake), tables=(gone,)), lake=lake)


def test_a_cut_does_not_show_the_rows_of_a_table_that_was_made_anew(lake: Path) -> None:
    """Its versions have the numbers of those that the cuts before it name."""
    shutil.rmtree(table_under(str(lake), ORDERS))
    for number in (7, 8, 9):
        put(lake, number)
    publish(lake, 3)

    assert ids(lake) == [7, 8, 9]
    with pytest.raises(CdcError, match=r"version 1 of .* no longer exists") as refused:
        ids(lake, 2)
    assert refused.value.detail == "the table was made anew since"


def test_the_package_has_only_the_names_of_the_reader() -> None:
    with pytest.raises(AttributeError, match="rede"):
        _ = cdc.rede


def test_views_of_a_lake_whose_path_spark_would_change_are_refused(
    lake: Path, tmp_path: Path
) -> None:
    """A user's session substitutes ``${..}``, in a view whenever the view is used."""
    odd = lake.rename(tmp_path / "${env:HOME}")
    session: Any = None  # it is never used

    with pytest.raises(CdcError, match="would read another path") as caught:
        cdc.views(session, lake=odd)
    assert caught.value.kind is ErrorKind.CONFIG
    assert ids(odd) == [1, 2]


def test_two_views_of_one_name_are_refused(lake: Path) -> None:
    session: Any = None
    put(lake, 4)
    row = cdc.cut(lake=lake)
    twin = replace(row.tables[0], table="shop.Orders")

    with pytest.raises(CdcError, match=r"shop\.orders and shop\.Orders have one name"):
        cdc.views(session, at=replace(row, tables=(*row.tables, twin)), lake=lake)
