"""Ledger and quarantine over many commits: few files, every row, the newest one first at hand."""

from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable

from cdc.lake.control_tables import FILES
from cdc.lake.ledger import Ledger, LedgerRow
from cdc.lake.quarantine import Quarantine, RefusedEvent

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def row(cut: int) -> LedgerRow:
    return LedgerRow(
        cut=cut, epoch=1, lsn=cut * 10, committed_at=NOW, published_at=NOW, transactions=1
    )


def refused(offset: int) -> RefusedEvent:
    return RefusedEvent(
        table="a.b",
        topic="w.a.b",
        partition=0,
        offset=offset,
        key=b"k",
        value=None,
        value_schema_id=7,
        reason="garbage",
        quarantined_at=NOW,
    )


def files(path: Path) -> int:
    return len(DeltaTable(path).file_uris())


def test_the_ledger_stays_a_few_files_and_loses_no_cut(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    written = [row(cut) for cut in range(1, 2 * FILES + 3)]
    most = 0
    for one in written:
        ledger.append(one)
        assert ledger.last() == one
        most = max(most, files(tmp_path / "ledger"))
    assert most <= FILES
    assert list(ledger.rows()) == written
    assert Ledger(str(tmp_path / "ledger")).last() == written[-1]


def test_the_quarantine_stays_a_few_files_and_loses_no_event(tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    written = [refused(offset) for offset in range(FILES + 3)]
    for one in written:
        quarantine.add([one])
    quarantine.add(written[:5])
    assert quarantine.rows() == written
    assert files(tmp_path / "quarantine") <= FILES
