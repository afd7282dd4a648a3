"""``tests/soak`` reports tables that stand still while another one is moved."""

from datetime import UTC, datetime

from cdc.lake.records.ledger import LedgerRow, TableEntry
from tests.soak.schema.bystanders import NAMES, STILL_SECONDS, Evidence

ONE = frozenset({"renamed 1"})
TWO = ONE | {"renamed 2"}
ALL = dict.fromkeys(NAMES, TWO)
MOVED = "moves.renamed"


def _cut(number: int, **states: str) -> LedgerRow:
    entries = (
        TableEntry(table=f"moves.{name}", path="", version=0, offset=0, state=state, reason="why")
        for name, state in states.items()
    )
    return LedgerRow(
        cut=number,
        epoch=1,
        lsn=1,
        committed_at=None,
        published_at=datetime(2026, 1, 1, tzinfo=UTC),
        transactions=1,
        tables=tuple(entries),
    )


def test_tables_that_go_on_together_are_no_failure() -> None:
    evidence = Evidence(0, {MOVED})
    evidence.see(1, _cut(1), dict.fromkeys(NAMES, ONE))
    evidence.see(2, _cut(2, renamed="stopped", other="streaming"), ALL)

    assert list(evidence.failures(2)) == []


def test_a_table_that_was_behind_the_others_is_named_though_it_came_after_them() -> None:
    evidence = Evidence(0, {MOVED})
    evidence.see(1, _cut(1), ALL | {"beside_9": ONE})
    evidence.see(2, _cut(2), ALL)

    assert list(evidence.failures(2)) == ["beside_9 is behind the others at cut 1: renamed 2"]


def test_rows_that_none_of_them_has_are_missed() -> None:
    evidence = Evidence(0, {MOVED})
    evidence.see(1, _cut(1), ALL)

    assert list(evidence.failures(3)) == [f"{name} has the rows of 2 steps of 3" for name in NAMES]


def test_a_table_that_stopped_meanwhile_is_named_though_it_streams_at_the_end() -> None:
    evidence = Evidence(0, {MOVED})
    evidence.see(1, _cut(1, other="stopped"), ALL)
    evidence.see(2, _cut(2, other="streaming"), ALL)

    assert list(evidence.failures(2)) == ["moves.other was stopped meanwhile: why"]


def test_all_that_stand_still_together_are_a_failure() -> None:
    evidence = Evidence(0, {MOVED})
    evidence.see(STILL_SECONDS + 1, _cut(1), ALL)

    assert list(evidence.failures(2)) == [f"nothing was published for {STILL_SECONDS + 1:.0f} s"]
