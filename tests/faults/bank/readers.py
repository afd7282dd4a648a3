"""A reader that continually reads the newest cut by ``cdc.read``, as a downstream program does."""

import time
from dataclasses import dataclass
from typing import Any, Final

import cdc
from tests.faults.bank.armed import Armed
from tests.faults.bank.promises import Kept, assert_none_fell, judged
from tests.waiting import until

RECOVERY_SECONDS: Final = 600


def recovered(bank: Armed) -> float:
    """Return the seconds until a cut holds what is committed now."""
    began = time.monotonic()
    with bank.connect() as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    until(lambda: (cdc.cut(lake=bank.lake).lsn or 0) >= row[0], RECOVERY_SECONDS)
    return time.monotonic() - began


@dataclass
class Reader:
    """A reader of all the bank's tables at the newest cut, for repeated looks."""

    installation: Armed
    reads: int = 0
    cuts: int = 0
    """Different cuts among the reads."""
    _newest: int = 0
    _kept: Kept | None = None

    @property
    def summary(self) -> str:
        """The number of reads and cuts, for the report."""
        return f"{self.reads} reads of {self.cuts} cuts"

    def look(self) -> None:
        """Read all tables at the newest cut and judge them."""
        cut = cdc.cut("latest", lake=self.installation.lake)
        assert cut.cut >= self._newest, "the newest cut is older than it was"

        def rows(table: str, *columns: str) -> list[tuple[Any, ...]]:
            data = cdc.read(table, at=cut, lake=self.installation.lake).read_all()
            return list(zip(*(data.column(name).to_pylist() for name in columns), strict=True))

        self._judge(cut.cut, judged(rows, f"cut {cut.cut}"))
        self.reads += 1

    def _judge(self, cut: int, kept: Kept) -> None:
        """Assert that a cut never changes and that later cuts lose nothing."""
        if cut == self._newest:
            assert kept == self._kept, f"cut {cut} changed"
        elif self._kept is not None:
            assert_none_fell(self._kept.counters, kept.counters, f"cut {cut}")
            assert set(self._kept.marks or ()) <= set(kept.marks or ()), f"cut {cut} lost a mark"
        self.cuts += cut != self._newest
        self._newest, self._kept = cut, kept
