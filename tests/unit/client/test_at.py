"""``--at`` accepts a number, an LSN, a time or latest, and finds the cut in a ledger."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc.client.read.at import Latest, Numbered, UpToLsn, UpToTime, parse
from cdc.client.read.published import cut_at
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import Ledger, LedgerRow

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("latest", Latest()),
        ("17", Numbered(17)),
        ("0/16B3748", UpToLsn(0x16B3748)),
        ("A/ff", UpToLsn(0xA000000FF)),
        ("2026-01-31T12:00:00Z", UpToTime(NOON)),
        ("2026-01-31 13:00+01:00", UpToTime(NOON)),
    ],
)
def test_each_way_to_name_a_cut(text: str, meant: object) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize("text", ["yesterday", "", "-1", "1/2/3", "0/123456789", "2026-13-01"])
def test_an_invalid_name_of_a_cut_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(CdcError, match="not a cut number, an LSN, a timestamp") as caught:
        parse(text)
    assert caught.value.kind is ErrorKind.CONFIG
    assert "wal2lake cuts" in caught.value.remedy


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00", "2026-01-31"])
def test_a_time_without_a_zone_is_refused(text: str) -> None:
    with pytest.raises(CdcError, match="has no time zone"):
        parse(text)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Return a ledger of two epochs: the second begins at lower LSNs, and its clock jumps back."""
    made = Ledger(str(tmp_path / "ledger"))
    told = [  # epoch, lsn, minutes after noon
        (1, None, None),
        (1, 0x100, 0),
        (1, 0x200, 5),
        (2, None, None),
        (2, 0x50, 10),
        (2, 0x60, 8),
        (2, 0x180, 20),
    ]
    for number, (epoch, lsn, minutes) in enumerate(told, 1):
        at = None if minutes is None else NOON + timedelta(minutes=minutes)
        row = LedgerRow(
            cut=number, epoch=epoch, lsn=lsn, committed_at=at, published_at=NOON, transactions=1
        )
        made.append(row)
    return made


def number(ledger: Ledger, at: str | int | datetime | None) -> int:
    found = cut_at(ledger, at)
    assert found is not None
    return found.cut


def test_latest_and_a_number_find_their_cut(ledger: Ledger) -> None:
    assert [number(ledger, at) for at in (None, "latest", 1, "4", 7)] == [7, 7, 1, 4, 7]


def test_an_lsn_means_the_newest_epoch_that_has_it(ledger: Ledger) -> None:
    assert [number(ledger, at) for at in ("0/50", "0/5F", "0/FF", "0/17F", "0/180", "F/0")] == [
        5,
        5,
        6,
        6,
        7,
        7,
    ]


@pytest.mark.parametrize(
    ("minutes", "cut"), [(0, 2), (4.999999, 2), (5, 3), (8, 3), (9, 3), (10, 6), (19, 6), (99, 7)]
)
def test_no_commit_after_the_time_is_in_its_cut(ledger: Ledger, minutes: float, cut: int) -> None:
    """Cut 6 has a commit of 12:08, but also the earlier one of 12:10."""
    assert number(ledger, NOON + timedelta(minutes=minutes)) == cut


def test_a_time_counts_to_the_microsecond(ledger: Ledger) -> None:
    five = NOON + timedelta(minutes=5)
    just_before = five - timedelta(microseconds=1)
    assert [number(ledger, five), number(ledger, just_before.isoformat())] == [3, 2]


@pytest.mark.parametrize("at", [0, 8, "0/4F", "2026-01-31T11:59:59Z"])
def test_a_missing_cut_is_an_error(ledger: Ledger, at: str | int) -> None:
    with pytest.raises(CdcError, match="no cut at") as caught:
        cut_at(ledger, at)
    assert caught.value.kind is ErrorKind.CONFIG


def test_nothing_is_published_yet(tmp_path: Path) -> None:
    assert cut_at(Ledger(str(tmp_path / "none")), "latest") is None
    with pytest.raises(CdcError, match="no cut at 1"):
        cut_at(Ledger(str(tmp_path / "none")), 1)
