"""Epochs of a lake: their records, and where the first cut of an epoch begins."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc.lake.records import epochs
from cdc.lake.records.base import base_of
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import LedgerRow, TableEntry

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
LEFT = {"w.s.t": 41, "w.s.empty": -1, "w.transaction": 99, "w.wal2lake.structure": 7}


def begun(path: Path, left_behind: dict[str, int]) -> Epoch:
    return epochs.begin(
        str(path),
        name="w",
        reason="slot w is gone",
        lsn=1 << 40,
        left_behind=left_behind,
        topic_ids=dict.fromkeys(left_behind, "an id"),
        system="7711081015669059609",
        timeline=3,
    )


def entry(table: str, offset: int) -> TableEntry:
    return TableEntry(table=table, path=f"/{table}", version=3, offset=offset, state="streaming")


def row(*tables: TableEntry, epoch: int = 1, markers: int = 90, notes: int = 8) -> LedgerRow:
    return LedgerRow(
        cut=17,
        epoch=epoch,
        lsn=5000,
        committed_at=NOW,
        published_at=NOW,
        transactions=4,
        request="r",
        covers_lsn=5001,
        marker_offset=markers,
        landing_floor=6,
        notes_offset=notes,
        tables=tables,
    )


def test_a_lake_without_a_record_is_in_its_first_epoch(tmp_path: Path) -> None:
    assert epochs.last(str(tmp_path / "epochs")) is None
    assert epochs.number(None) == 1


def test_an_epoch_is_read_back_as_it_was_recorded(tmp_path: Path) -> None:
    first = begun(tmp_path, LEFT)
    assert (first.number, first.reason, first.lsn) == (2, "slot w is gone", 1 << 40)
    assert first.left_behind == LEFT
    assert epochs.last(str(tmp_path)) == first

    second = begun(tmp_path, {**LEFT, "w.transaction": 100})

    assert second.number == 3
    assert epochs.last(str(tmp_path)) == second


def test_an_interrupted_beginning_is_one_epoch(tmp_path: Path) -> None:
    """No event arrived between the two attempts."""
    assert begun(tmp_path, LEFT) == begun(tmp_path, LEFT)


@pytest.mark.parametrize(
    ("topic", "expected"), [("w.s.t", 41), ("w.s.empty", -1), ("w.s.unknown", -1)]
)
def test_what_is_left_behind_of_a_topic(tmp_path: Path, topic: str, expected: int) -> None:
    assert begun(tmp_path, LEFT).left_behind_in(topic) == expected


def test_the_base_is_the_last_cut_within_an_epoch(tmp_path: Path) -> None:
    assert base_of(row(entry("s.t", 3)), None) == row(entry("s.t", 3))
    inside = row(entry("s.t", 3), epoch=2)
    assert base_of(inside, begun(tmp_path, LEFT)) == inside


def test_the_base_of_an_epoch_is_after_what_is_left_behind(tmp_path: Path) -> None:
    """It covers every topic, is never before the last cut, and has no earlier LSN."""
    last = row(entry("s.t", 12), entry("s.empty", -1), entry("s.late", 5), notes=7)

    base = base_of(last, begun(tmp_path, LEFT))

    assert (base.epoch, base.cut, base.landing_floor) == (2, 17, 6)
    assert (base.lsn, base.committed_at, base.covers_lsn, base.request) == (None,) * 4
    assert (base.marker_offset, base.notes_offset) == (99, 7)
    assert [(e.table, e.offset) for e in base.tables] == [
        ("s.t", 41),
        ("s.empty", -1),
        ("s.late", 5),
    ]


def test_offsets_in_topics_of_another_name_are_ignored(tmp_path: Path) -> None:
    """The pipeline continues under another name: its topics were empty when the epoch began."""
    left = {"w.s.t": -1, "w.transaction": -1, "w.wal2lake.structure": -1, "old.s.t": 12}

    base = base_of(row(entry("s.t", 12)), begun(tmp_path, left))

    assert (base.marker_offset, base.notes_offset) == (-1, -1)
    assert [e.offset for e in base.tables] == [-1]


def test_an_epoch_of_a_lake_without_a_cut(tmp_path: Path) -> None:
    assert base_of(None, None).epoch == 1
    base = base_of(None, begun(tmp_path, LEFT))
    assert (base.cut, base.epoch, base.marker_offset, base.notes_offset) == (0, 2, 99, 7)
