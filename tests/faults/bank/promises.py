"""What the bank promises of all its tables at one moment, whoever reads them, and however."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.bank.bank import BULK, COLUMNS, PARTS, RING, THOUSANDS, TOTAL

MARKED: Final = ("bank.debits", "bank.credits", "bank.audit")
Rows = Callable[..., list[tuple[Any, ...]]]
"""The rows of a table, by its name, with the columns named."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What tells one moment from another; ``marks`` is None where they were not looked at."""

    counters: Mapping[int, int]
    marks: list[int] | None


def judged(rows: Rows, where: str, *, marks: bool = True) -> Kept:
    """Fails for the first promise that is broken; ``where`` is what the rows are of."""
    total = sum(balance for (balance,) in rows("bank.accounts", "balance"))
    assert total == TOTAL, f"{where}: the balances are {total} together"
    found = _marks(rows, where) if marks else None
    listed = rows("bank.counters", "name", "n")
    counters = {name: int(n) for name, n in listed}
    assert len(counters) == len(listed), f"{where}: a counter is there twice"
    _judge_ring(rows, where)
    _judge_together(rows, where)
    return Kept(counters, found)


def assert_none_fell(before: Mapping[int, int], now: Mapping[int, int], where: str) -> None:
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
    for found in ([key for key, _ in ring], [name for _, name in ring]):
        assert sorted(found) == list(range(1, RING + 1)), f"{where}: the ring is {ring}"


def _judge_together(rows: Rows, where: str) -> None:
    """What changes in one transaction only, by statements over several rows."""
    filled = rows("bank.emptied", "part", "filling")
    parts = sorted(part for part, _ in filled)
    assert parts == list(range(1, PARTS + 1)), f"{where}: parts of a filling: {parts}"
    together = {"filling": filled}
    for name, number in (("bulk", BULK), ("thousands", THOUSANDS)):
        together[name] = rows(f"bank.{name}", "id", "change")
        assert len(together[name]) == number, f"{where}: {len(together[name])} rows of the {name}"
    together["broad"] = rows("bank.broad", "id", *COLUMNS)
    # A row has its ``n`` by an event, and its ``shape`` by the change of structure alone.
    together["reshaped"] = rows("bank.reshaped", "id", "n", "shape")
    for name, listed in together.items():
        changes = {change for _, *values in listed for change in values}
        assert len(changes) == 1, f"{where}: a {name} is there in part: {changes}"
