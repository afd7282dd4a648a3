"""What ledger, quarantine and a table's older versions have of the past can be given up."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.quarantine import EventState, Quarantine, RefusedEvent
from cdc.lake.upkeep.erasure import begin_anew, delete_older
from tests.masked.traces import files_with

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def cut(number: int) -> LedgerRow:
    return LedgerRow(
        cut=number, epoch=1, lsn=number, committed_at=NOW, published_at=NOW, transactions=1
    )


def refused(table: str, offset: int, value: bytes) -> RefusedEvent:
    return RefusedEvent(
        table=table,
        topic=f"w.{table}",
        partition=0,
        offset=offset,
        key=b"k",
        value=value,
        value_schema_id=7,
        reason=f"refused {value.decode()}",
        quarantined_at=NOW,
    )


def test_a_ledger_gives_up_the_cuts_before_one(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    for number in range(1, 6):
        ledger.append(cut(number))

    Ledger(ledger.path).forget_before(4)
    assert [row.cut for row in ledger.rows()] == [4, 5]
    assert ledger.last() == cut(5)
    ledger.append(cut(6))
    ledger.forget_before(2)

    assert [row.cut for row in ledger.rows()] == [4, 5, 6]
    assert ledger.last() == cut(6)


def test_a_quarantine_forgets_the_events_of_a_table_in_all_versions(tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    quarantine.forget("a.b")  # there is none yet
    events = [refused("a.b", number, b"SECRET%d" % number) for number in range(3)]
    quarantine.add(events)
    quarantine.add([refused("a.other", 1, b"KEPT")])
    quarantine.settle(events, state=EventState.RETRIED, by="me", note="", at=NOW)
    assert files_with(tmp_path, "SECRET")

    quarantine.forget("a.b")

    assert files_with(tmp_path, "SECRET") == []
    assert [event.value for event in quarantine.rows()] == [b"KEPT"]
    quarantine.forget("a.b")
    quarantine.add([refused("a.b", 9, b"NEW")])
    assert [event.value for event in quarantine.rows("a.b")] == [b"NEW"]


def test_a_table_keeps_its_newest_version_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1], "word": ["SECRET"]}))
    write_deltalake(path, pa.table({"id": [2], "word": ["kept"]}), mode="append")
    (tmp_path / "t" / "stray.parquet").write_bytes(b"SECRET")
    DeltaTable(path).delete("id = 1")
    version = DeltaTable(path).version()
    assert len(files_with(tmp_path, "SECRET")) >= 3

    since = begin_anew(path).time
    write_deltalake(path, pa.table({"id": [3], "word": ["later"]}), mode="append")
    delete_older(path, since)

    assert files_with(tmp_path, "SECRET") == []
    assert sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist()) == [2, 3]
    assert DeltaTable(path, version=version).to_pyarrow_table()["id"].to_pylist() == [2]
    with pytest.raises((DeltaError, OSError)):
        DeltaTable(path, version=version - 1).to_pyarrow_table()


def test_a_log_that_is_not_understood_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(str(path), pa.table({"id": [1]}))
    since = begin_anew(str(path)).time
    checkpoint = path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    checkpoint.write_bytes(b"no Parquet")

    with pytest.raises(CdcError, match="cannot be told from new ones") as caught:
        delete_older(str(path), since)

    assert caught.value.kind is ErrorKind.CONFLICT
