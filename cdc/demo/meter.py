"""Follows log and ledger while the demonstration runs, as any reader of the lake can."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc.config import Config
from cdc.demo.freshness import Freshness
from cdc.lake.layout import ledger_path, log_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.table.positions import landed_position
from cdc.observe.freshness import percentile

RECENT = 50  # commits that the freshness shown while running is taken from


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at the whole way."""

    seconds: float  # since the first
    landed: int  # offsets taken into the log since then
    applied: int  # transactions in cuts since then
    freshness: float  # p50 of the commits covered lately
    oldest: float  # age of the oldest noted commit that no cut covers yet


@dataclass(kw_only=True)
class Meter:
    """Looks from its creation on; keeps the cuts for the report."""

    config: Config
    freshness: Freshness
    rows: list[LedgerRow] = field(default_factory=list)  # cuts published since the start
    first: LedgerRow | None = field(init=False)  # the newest cut at the start
    _ledger: Ledger = field(init=False)
    _started: float = field(init=False)
    _landed: int = field(init=False)

    def __post_init__(self) -> None:
        self._ledger = Ledger(ledger_path(self.config))
        self.first = self._ledger.last()
        self._landed = _events(self._offsets())
        self._started = time.monotonic()

    def read(self) -> Reading:
        self._follow()
        return Reading(
            seconds=time.monotonic() - self._started,
            landed=_events(self._offsets()) - self._landed,
            applied=sum(row.transactions for row in self.rows),
            freshness=percentile(sorted(self.freshness.seconds[-RECENT:]), 0.5),
            oldest=self.freshness.oldest_waiting(time.time()),
        )

    def _follow(self) -> None:
        """Take in the cuts published since the last look."""
        newest = self.rows[-1] if self.rows else self.first
        known = newest.cut if newest else 0
        last = self._ledger.last()
        if last is None or last.cut == known:
            return
        for row in self._ledger.rows(after=known):
            self.rows.append(row)
            if row.lsn is not None:
                self.freshness.published(lsn=row.lsn, at=row.published_at)

    def _offsets(self) -> Mapping[str, int]:
        landed = landed_position(log_path(self.config))
        return landed.offsets if landed else {}


def _events(offsets: Mapping[str, int]) -> int:
    """Offsets start at 0; those of Kafka's own transaction markers are counted too."""
    return sum(offset + 1 for offset in offsets.values())
