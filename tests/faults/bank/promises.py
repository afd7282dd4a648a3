"""Checks the bank's promises about all its tables at one moment, for any reader."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.bank.bank import BULK, COLUMNS, PARTS, RING, THOUSANDS, TOTAL

MARKED: Final = ("bank.debits", "bank.credits", "bank.audit")
Rows = Callable[..., list[tuple[Any, ...]]]
"""A function that returns a table's rows, given its name and columns."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one moment shows for comparison with others; ``marks`` is None if not checked."""

    counters: Mapping[int, int]
    marks: list[int] | None


def judged(rows: Rows, where: str, *, marks: bool = True) -> Kept:
    """Assert every promise of the rows; ``where`` names them in a failure."""
    total = sum(balance for (balance,) in rows("bank.accounts", "balance"))
    assert total == TOTAL, f"{where}: the balances are {total} together"
    mark_list = _marks(rows, where) if marks else None
    listed = rows("bank.counters", "name", "n")
    counters = {name: int(n) for name, n in listed}
    assert len(counters) == len(listed), f"{where}: a counter is there twice"
    _judge_ring(rows, where)
    _judge_together(rows, where)
    return Kept(counters, mark_list)


def assert_none_fell(before: Mapping[int, int], now: Mapping[int, int], where: str) -> None:
    """Assert that no counter is lower than before."""
    fell = [name for name, n in before.items() if now.get(name, -1) < n]
    assert fell == [], f"{where}: counters are lower than at the cut before: {fell}"


def _marks(rows: Rows, where: str) -> list[int]:
    debits, credits_, audited = (
        sorted(mark for (mark,) in rows(table, "mark")) for table in MARKED
    )
    assert len(set(debits)) == len(debits), f"{where}: a mark is there twice"
    assert debits == credits_ == audited, f"{where}: a transaction is there in part"
    return debits


def _judge_ring(rows: Rows, where: str) -> None:
    ring = rows("bank.ring", "id", "name")
    for values in ([key for key, _ in ring], [name for _, name in ring]):
        assert sorted(values) == list(range(1, RING + 1)), f"{where}: the ring is {ring}"


def _judge_together(rows: Rows, where: str) -> None:
    """Assert that rows which always change in one transaction agree."""
    filled = rows("bank.emptied", "part", "filling")
    parts = sorted(part for part, _ in filled)
    assert parts == list(range(1, PARTS + 1)), f"{where}: parts of a filling: {parts}"
    together = {"filling": filled}
    for name, number in (("bulk", BULK), ("thousands", THOUSANDS)):
        together[name] = rows(f"bank.{name}", "id", "change")
        assert len(together[name]) == number, f"{where}: {len(together[name])} rows of the {name}"
    together["broad"] = rows("bank.broad", "id", *COLUMNS)
    # An event sets a row's ``n``; only the change of structure sets its ``shape``.
    together["reshaped"] = rows("bank.reshaped", "id", "n", "shape")
    for name, listed in together.items():
        changes = {change for _, *values in listed for change in values}
        assert len(changes) == 1, f"{where}: a {name} is there in part: {changes}"
