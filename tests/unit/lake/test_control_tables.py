"""After many commits, ledger and quarantine still have few files and every row."""

import json
import os
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cdc.lake.records.derived_entry import DERIVED_ENTRY, DerivedEntry
from cdc.lake.records.ledger import NAMED, SCHEMA, TABLE_ENTRY, Ledger, LedgerRow, TableEntry
from cdc.lake.records.quarantine import Quarantine, RefusedEvent
from cdc.lake.table.positions import MARK
from cdc.lake.upkeep.control_tables import FILES, KEPT, optimize
from tests.aged import age

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
    for published in written:
        ledger.append(published)
        assert ledger.last() == published
        most = max(most, files(tmp_path / "ledger"))
    assert most <= FILES
    assert list(ledger.rows()) == written
    assert Ledger(str(tmp_path / "ledger")).last() == written[-1]


def test_a_file_larger_than_all_later_ones_is_not_rewritten(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"word": [os.urandom(100_000)]}))
    [large] = DeltaTable(path).file_uris()
    rewritten = 0
    for number in range(2 * FILES + 3):
        write_deltalake(path, pa.table({"word": [b"%d" % number]}), mode="append")
        rewritten += optimize(path, DeltaTable(path))

    assert rewritten == 2
    assert large in DeltaTable(path).file_uris()
    assert len(DeltaTable(path).file_uris()) < FILES


def test_the_ledgers_transaction_log_keeps_an_hour(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger, written = Ledger(str(path)), [row(cut) for cut in range(1, 121)]
    for published in written[:60]:
        ledger.append(published)
    age(str(path), days=8)
    for published in written[60:]:
        ledger.append(published)

    commits = [int(file.stem) for file in (path / "_delta_log").glob("*.json")]
    assert 0 < min(commits) < 60
    assert list(Ledger(str(path)).rows()) == written
    assert Ledger(str(path)).last() == written[-1]


def test_files_of_the_ledger_are_kept_for_an_hour(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(str(path))
    for cut in range(1, FILES + 1):
        ledger.append(row(cut))
    assert len(list(path.glob("*.parquet"))) > FILES, "readers may have opened them"
    orphan = path / "part-00000-written-and-never-committed.parquet"
    orphan.write_bytes(b"x")
    _move_back(path, timedelta(hours=2))
    for cut in range(FILES + 1, 2 * FILES + 1):
        ledger.append(row(cut))

    assert files(path) <= FILES
    assert len(list(path.glob("*.parquet"))) <= files(path) + FILES + 1
    assert not orphan.exists()
    assert [found.cut for found in ledger.rows()] == [*range(1, 2 * FILES + 1)]


def _move_back(path: Path, by: timedelta) -> None:
    """Let everything in the table have happened so much earlier."""
    for file in path.rglob("*"):
        then = file.stat().st_mtime - by.total_seconds()
        os.utime(file, (then, then))
    for file in (path / "_delta_log").glob("*.json"):
        at = file.stat()
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for removed in (action["remove"] for action in lines if "remove" in action):
            removed["deletionTimestamp"] -= int(by.total_seconds() * 1000)
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(file, (at.st_mtime, at.st_mtime))


def test_a_ledger_of_an_earlier_version_gets_the_properties_of_todays(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    ledger = Ledger(path)
    ledger.append(row(1))
    usual = {"delta.logRetentionDuration": "interval 168 hours"}
    mark = CommitProperties(custom_metadata={MARK: json.dumps({"cut": 1})})
    DeltaTable(path).alter.set_table_properties(usual, commit_properties=mark)
    for cut in range(2, FILES + 2):
        ledger.append(row(cut))

    found = DeltaTable(path).metadata().configuration
    assert {name: found[name] for name in KEPT} == KEPT
    assert ledger.last() == row(FILES + 1)
    assert [each.cut for each in ledger.rows()] == [*range(1, FILES + 2)]


def test_a_cut_is_read_back_as_published_even_after_rows_of_an_earlier_version(
    tmp_path: Path,
) -> None:
    """The earlier version has no counts by operation, no topic ids and no ids of Delta tables."""
    entry = TableEntry(table="a.b", path="/a/b", version=4, offset=7, state="streaming")
    counts = {"inserts": 1, "updates": 2, "deletes": 3, "reads": 4, "truncates": 5}
    counted = TableEntry(**{**asdict(entry), **counts, "delta_id": "x"})
    made = DerivedEntry(table="a.c", path="/a/c", version=1, state="streaming")
    new = replace(row(2), tables=(counted,), topic_ids={"w.a.b": "id", "w.transaction": "x"})
    new = replace(new, derived=(replace(made, delta_id="y"),))
    first = replace(row(1), tables=(entry,), derived=(made,))
    old = asdict(first)
    old.pop("topic_ids")
    for name in counts:
        old["tables"][0].pop(name)
    for entries in (old["tables"], old["derived"]):
        entries[0].pop("delta_id")
    ledger = Ledger(str(tmp_path / "ledger"))
    kept = [field for field in TABLE_ENTRY if field.name not in {*counts, "delta_id"}]
    fields = [field for field in SCHEMA if field.name != "topic_ids"]
    at = [field.name for field in fields].index("tables")
    fields[at] = pa.field("tables", pa.list_(pa.struct(kept)))
    at = [field.name for field in fields].index("derived")
    derived = [field for field in DERIVED_ENTRY if field.name != "delta_id"]
    fields[at] = pa.field("derived", pa.list_(pa.struct(derived)))
    write_deltalake(ledger.path, pa.Table.from_pylist([old], schema=pa.schema(fields)))

    ledger.append(new)

    assert list(ledger.rows()) == [first, new]
    assert ledger.last() == new


@pytest.mark.parametrize("tables", [0, NAMED, NAMED + 1, 300])
def test_the_last_cut_is_read_back_however_many_tables_it_has(tmp_path: Path, tables: int) -> None:
    entries = tuple(
        TableEntry(table=f"a.t{n}", path=f"/a/t{n}", version=n, offset=n, state="streaming")
        for n in range(tables)
    )
    ledger = Ledger(str(tmp_path / "ledger"))
    for cut in (1, 2):
        ledger.append(replace(row(cut), tables=entries, topic_ids={"w.a.b": "id"}))

    assert Ledger(ledger.path).last() == replace(row(2), tables=entries, topic_ids={"w.a.b": "id"})
    entry = tmp_path / "ledger" / "_delta_log" / f"{1:020d}.json"
    named = entry.read_text().count("/a/t")
    assert named == (tables if tables <= NAMED else 0)


def test_the_quarantine_stays_a_few_files_and_loses_no_event(tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path / "quarantine"))
    written = [refused(offset) for offset in range(FILES + 3)]
    for event in written:
        quarantine.add([event])
    quarantine.add(written[:5])
    assert quarantine.rows() == written
    assert files(tmp_path / "quarantine") <= FILES


def test_cuts_older_than_the_retention_expire_except_for_one(tmp_path: Path) -> None:
    """The remaining old cut was the newest at the beginning of the retention."""
    ledger = Ledger(str(tmp_path / "ledger"), kept=timedelta(hours=FILES / 2))
    for cut in range(1, FILES + 3):
        ledger.append(replace(row(cut), published_at=NOW + timedelta(hours=cut)))

    kept = [published.cut for published in ledger.rows()]
    first = ledger.first()
    assert kept == list(range(FILES // 2, FILES + 3))
    assert first is not None
    assert first.cut == kept[0]
    assert ledger.last() == replace(row(FILES + 2), published_at=NOW + timedelta(hours=FILES + 2))


def test_without_a_retention_every_cut_stays(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    for cut in range(1, FILES + 3):
        ledger.append(replace(row(cut), published_at=NOW + timedelta(days=cut)))

    assert len(list(ledger.rows())) == FILES + 2
