"""Every way to commit without Spark, into a store that fails; delta-rs reads what is there."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc.lake.commit.alter import alter_without_spark
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.commit.appender import MEASURED, Appender
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.log_entry import Origin
from cdc.lake.commit.row_files import RowFiles
from cdc.lake.create.first_entry import create_plain_table, create_table
from cdc.lake.create.linked_table import link_table
from cdc.lake.create.whole_table import replace_table
from cdc.lake.files import requests
from cdc.lake.files.fence import fenced
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.store_of import store_of
from cdc.lake.records import epochs
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.operations import Operations
from cdc.lake.records.quarantine import Quarantine, RefusedEvent
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.foreign_commits import ForeignCommitCheck
from cdc.lake.table.positions import Position, position
from cdc.lake.upkeep.held import held, oldest_hold
from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.strays import delete_strays
from cdc.state.operation import Operation
from tests.objects.faults import Fault, first, share
from tests.objects.server import ObjectServer

FIELDS = [
    {"name": name, "type": of, "nullable": True, "metadata": {}}
    for name, of in (("id", "integer"), ("name", "string"), ("_cdc_offset", "long"))
]
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.checkpointInterval": "3",
    "wal2lake.key": '["id"]',
}
FAILING = {Fault.BUSY: 0.1, Fault.LOST: 0.05, Fault.LATE_BUSY: 0.05}
ANSWERS = pytest.mark.parametrize("fault", [Fault.LOST, Fault.LATE_BUSY, Fault.BUSY])


def at(offset: int) -> Position:
    return Position(epoch=1, offset=offset)


@pytest.fixture
def table(lake: str) -> str:
    path = f"{lake}/shop/t"
    create_table(path, FIELDS, PROPERTIES, at(0).metadata())
    return path


def rows(committer: Committer, *ids: int) -> pa.Table:
    listed = [{"id": i, "name": f"n{i}", "_cdc_offset": i} for i in ids]
    return pa.Table.from_pylist(listed, schema=arrow_schema(committer.open().metadata))


def add(committer: Committer, *ids: int) -> str:
    """Add rows in one commit, and return the path of their file."""
    new = rows(committer, *ids)
    before = set(committer.open().files)
    committer.commit(new, {}, at(max(ids)))
    (path,) = set(committer.open().files) - before
    return path


def seen(path: str) -> list[int]:
    query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT id FROM t ORDER BY id")
    return [row["id"] for row in pa.table(query.read_all()).to_pylist()]


def test_rows_are_added_and_deleted_while_the_store_fails(
    table: str, objects: ObjectServer
) -> None:
    objects.faults.follow(share(5, FAILING))
    committer, expected = Committer(table), list[int]()
    for number in range(1, 9):
        path = add(committer, number * 10, number * 10 + 1)
        new = rows(committer, number * 10 + 2)
        committer.commit(new, {path: [0]}, at(number))
        expected += [number * 10 + 1, number * 10 + 2]
    objects.faults.heal()

    assert seen(table) == expected
    assert position(table) == at(8)
    assert DeltaTable(table).version() == 16
    assert set(objects.faults.met) == set(FAILING)


@ANSWERS
def test_a_whole_table_takes_the_place_of_another_once(
    lake: str, objects: ObjectServer, fault: Fault
) -> None:
    path = f"{lake}/marts/t"

    def replaced(*ids: int) -> int:
        listed = {"id": ids, "name": [f"n{i}" for i in ids], "_cdc_offset": ids}
        mark = at(max(ids)).metadata()
        return replace_table(path, FIELDS, PROPERTIES, pa.table(listed), mark)

    assert replaced(1, 2) == 0
    objects.faults.follow(first(1, fault, "PUT", entry_name(1)))
    assert replaced(3) == 1

    assert len(objects.faults.met) == 1
    assert (seen(path), position(path)) == ([3], at(3))


@ANSWERS
def test_an_entry_whose_answer_is_lost_is_committed_once(
    table: str, objects: ObjectServer, fault: Fault
) -> None:
    committer = Committer(table)
    objects.faults.follow(first(1, fault, "PUT", entry_name(1)))
    committer.commit(rows(committer, 1), {}, at(1))
    committer.commit(rows(committer, 2), {}, at(2))

    assert len(objects.faults.met) == 1
    assert (seen(table), DeltaTable(table).version()) == ([1, 2], 2)


def test_nobody_commits_behind_an_entry_that_it_does_not_know(table: str) -> None:
    one, other = Committer(table), Committer(table)
    late = rows(other, 2)
    add(one, 1)
    with pytest.raises(StoreError, match=r"version 1 of .* is there already"):
        other.commit(late, {}, at(2))

    assert seen(table) == [1]


def test_a_store_that_does_not_answer_breaks_no_table(
    table: str, objects: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer, check = Committer(table), ForeignCommitCheck(table)
    check.checked_version()
    monkeypatch.setattr(requests, "PATIENCE", timedelta(seconds=0.3))
    objects.faults.follow(share(1, {Fault.BUSY: 1.0}))

    for ask in (committer.open, check.checked_version, Committer(table).open):
        with pytest.raises(StoreError, match="no answer"):
            ask()
    objects.faults.heal()

    assert check.checked_version() == 0
    assert committer.open().version == 0


def test_the_log_is_appended_to(lake: str, objects: ObjectServer) -> None:
    path, types = f"{lake}/_wal2lake/log", {"id": "integer", "name": "string"}
    create_plain_table(path, FIELDS[:2], {MEASURED: "1"}, at(0).metadata())
    appender = Appender(path, types)
    objects.faults.follow(share(6, FAILING))
    for number in range(20):
        appended = pa.table({"id": pa.array([number], pa.int32()), "name": [str(number)]})
        appender.append(appended, at(number).metadata())
    objects.faults.heal()

    assert seen(path) == list(range(20))
    assert DeltaTable(path).version() == 20


def test_files_in_pieces_are_taken_and_kept_in_a_second_table(table: str) -> None:
    committer = Committer(table)
    opened = committer.open()
    with RowFiles(store_of(table), opened.metadata, file_bytes=1, group_bytes=1) as files:
        for number in range(3):
            files.add(rows(committer, number))
    committer.open()
    committer.append(files.files, at(3))
    origin = Origin(
        read_version=-1, millis=1, metadata=at(3).metadata(), transaction="1", counts={}
    )
    link_table(table, files.files, f"{table}-kept", origin)
    for file in files.files:
        store_of(table).delete(file.path)

    assert seen(f"{table}-kept") == [0, 1, 2]


def test_small_files_are_combined_checkpointed_and_cleaned(table: str) -> None:
    committer = Committer(table)
    for number in range(1, 5):
        add(committer, number)
    assert committer.checkpoint(3)
    work = committer.combining(list(committer.open().files.values()))
    done = work()
    committer.open()
    assert committer.take_place(done, at(4)) == 5
    assert seen(table) == [1, 2, 3, 4]

    assert clean(table, time.time() + 60).files == 4

    assert seen(table) == [1, 2, 3, 4]
    assert Committer(table).open().version == 5


def test_strays_are_deleted_and_properties_changed(table: str) -> None:
    store, committer = store_of(table), Committer(table)
    add(committer, 1)
    for name in ("stray.parquet", "aB/stray.parquet", "_other/stray.parquet"):
        store.write(name, b"x")

    assert delete_strays(table, time.time() + 60) == 2
    wanted = SetProperties({"delta.checkpointInterval": "7"})
    version = alter_without_spark(table, wanted, at(1).metadata())

    assert store.size("_other/stray.parquet") == 1
    assert seen(table) == [1]
    assert DeltaTable(table).version() == version == 2
    assert DeltaTable(table).metadata().configuration["delta.checkpointInterval"] == "7"
    add(committer, 2)
    assert seen(table) == [1, 2]


def test_old_versions_are_held(lake: str) -> None:
    assert oldest_hold(lake) is None
    with held(lake, 1000.5):
        assert oldest_hold(lake) == 1000.5
    assert oldest_hold(lake) is None


def cut(number: int) -> LedgerRow:
    return LedgerRow(
        cut=number,
        epoch=1,
        lsn=number,
        committed_at=None,
        published_at=datetime.now(UTC),
        transactions=1,
    )


def refused(offset: int) -> RefusedEvent:
    return RefusedEvent(
        table="a.b",
        topic="t",
        partition=0,
        offset=offset,
        key=None,
        value=b"1",
        value_schema_id=1,
        reason="r",
        quarantined_at=datetime.now(UTC),
    )


def epoch(path: str, number: int) -> None:
    epochs.begin(
        path,
        name="w",
        reason="r",
        lsn=number,
        left_behind={"t": number},
        topic_ids={},
        system="s",
        timeline=1,
    )


def operation(number: int) -> Operation:
    return Operation(
        id=str(number),
        command="c",
        tables=(),
        line="l",
        asked_by="me",
        asked_at="2026-01-01T00:00:00+00:00",
    )


WRITES: dict[str, Callable[[str, int], object]] = {
    "ledger": lambda path, n: Ledger(path).append(cut(n)),
    "epochs": epoch,
    "quarantine": lambda path, n: Quarantine(path).add([refused(n)]),
    "operations": lambda path, n: Operations(path).begin(operation(n)),
}


@ANSWERS
@pytest.mark.parametrize("name", WRITES)
def test_a_row_of_a_control_table_is_there_once_though_an_answer_is_lost(
    lake: str, objects: ObjectServer, name: str, fault: Fault
) -> None:
    path = f"{lake}/_wal2lake/{name}"
    for number in range(3):
        objects.faults.follow(first(1, fault, "PUT", entry_name(number)))
        WRITES[name](path, number)

    assert len(objects.faults.met) == 3
    table = DeltaTable(path)
    assert table.version() == 2
    counted = QueryBuilder().register("t", table).execute("SELECT count(*) AS n FROM t").read_all()
    assert pa.table(counted)["n"].to_pylist() == [3]


@pytest.mark.parametrize("name", WRITES)
def test_a_job_that_has_lost_the_lake_writes_no_control_table(lake: str, name: str) -> None:
    def lost() -> None:
        raise StoreError("held by another")

    with fenced(lake, lost), pytest.raises(StoreError, match="held by another"):
        WRITES[name](f"{lake}/_wal2lake/{name}", 1)

    assert not DeltaTable.is_deltatable(f"{lake}/_wal2lake/{name}")


def test_the_ledger_knows_its_last_cut_after_a_lost_answer(
    lake: str, objects: ObjectServer
) -> None:
    ledger = Ledger(f"{lake}/_wal2lake/ledger")
    ledger.append(cut(1))
    objects.faults.follow(first(1, Fault.LATE_BUSY, "PUT", entry_name(1)))
    ledger.append(cut(2))
    objects.faults.heal()

    last = ledger.last()
    assert last is not None
    assert (last.cut, [row.cut for row in ledger.rows()]) == (2, [1, 2])
