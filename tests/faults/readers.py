"""A reader of the newest cut, as a downstream program is one: by ``cdc.read``, all the time."""

import time
from dataclasses import dataclass, field
from typing import Any, Final

import cdc
from cdc.lake.ledger import LedgerRow
from tests.faults.armed import Armed
from tests.faults.bank import TOTAL
from tests.faults.walk import MARKED
from tests.waiting import until

RECOVERY_SECONDS: Final = 600


def recovered(bank: Armed) -> float:
    """Seconds until a cut holds what is committed now."""
    began = time.monotonic()
    with bank.connect() as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    until(lambda: (cdc.cut(lake=bank.lake).lsn or 0) >= row[0], RECOVERY_SECONDS)
    return time.monotonic() - began


@dataclass
class Reader:
    """Reads the bank again and again; what it has seen at a cut it has to see there again."""

    installation: Armed
    reads: int = 0
    seen: dict[int, tuple[int, list[int]]] = field(default_factory=dict)

    def look(self) -> None:
        cut = cdc.cut("latest", lake=self.installation.lake)
        assert cut.cut >= max(self.seen, default=0), "the newest cut is older than it was"
        (total, marks) = found = self._balance(cut), self._marks(cut)
        assert total == TOTAL, f"cut {cut.cut}: the balances are {total} together"
        assert found == self.seen.setdefault(cut.cut, found), f"cut {cut.cut} changed"
        newest = max(self.seen)
        self.seen = {newest: self.seen[newest]}
        self.reads += 1
        assert marks

    def _balance(self, cut: LedgerRow) -> int:
        return sum(self._column(cut, "bank.accounts", "balance"))

    def _marks(self, cut: LedgerRow) -> list[int]:
        debits, credits_, audited = (sorted(self._column(cut, name, "mark")) for name in MARKED)
        assert debits == credits_ == audited, f"cut {cut.cut}: a transaction is there in part"
        return debits

    def _column(self, cut: LedgerRow, table: str, name: str) -> list[Any]:
        rows = cdc.read(table, at=cut, lake=self.installation.lake)
        found: list[Any] = rows.read_all().column(name).to_pylist()
        return found
