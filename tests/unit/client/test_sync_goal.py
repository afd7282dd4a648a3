"""Which cut holds everything up to an LSN, in captured and in derived tables."""

from datetime import UTC, datetime

import pytest

from cdc.client.sync import Goal
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow


def row(cut: int, lsn: int, *derived: tuple[str, int]) -> LedgerRow:
    entries = [
        DerivedEntry(table=f"m.t{n}", path="", version=0, state=state, at_cut=at)
        for n, (state, at) in enumerate(derived)
    ]
    return LedgerRow(
        cut=cut,
        epoch=1,
        lsn=lsn,
        committed_at=None,
        published_at=datetime.now(UTC),
        transactions=1,
        derived=tuple(entries),
    )


def first_of(*rows: LedgerRow, lsn: int = 100) -> int | None:
    goal = Goal(lsn, epoch=1)
    return next((each.cut for each in rows if goal.is_reached(each)), None)


def test_it_is_the_first_that_has_the_lsn() -> None:
    assert first_of(row(1, 99), row(2, 100), row(3, 101)) == 2
    assert first_of(row(1, 99)) is None


def test_a_late_derived_table_is_waited_for_only_until_it_has_the_lsn_too() -> None:
    """One that is always late would otherwise never be in sync."""
    rows = (
        row(2, 100, ("lagging", 1), ("streaming", 2)),
        row(3, 110, ("lagging", 1), ("streaming", 3)),
        row(4, 120, ("lagging", 2), ("streaming", 4)),
    )

    assert first_of(*rows) == 4


@pytest.mark.parametrize("state", ["stopped", "building", "degraded"])
def test_a_derived_table_that_does_not_move_is_not_waited_for(state: str) -> None:
    assert first_of(row(2, 100, (state, 0))) == 2
