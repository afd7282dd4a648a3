"""Follows log and ledger while the demo runs, as any reader of the lake can."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc.config import Config
from cdc.demo.freshness_meter import FreshnessMeter
from cdc.lake.layout import ledger_path, log_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.table.positions import landed_position
from cdc.observe.freshness import percentile

RECENT = 50  # the freshness shown while running is that of so many commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Holds one measurement of the pipeline."""

    seconds: float  # since the start of the meter
    landed: int  # offsets landed in the log since then
    applied: int  # transactions in cuts published since then
    freshness: float  # p50 of the commits covered last, in seconds
    oldest: float  # age in seconds of the oldest commit that no cut covers yet


@dataclass(kw_only=True)
class Meter:
    """Measures from its creation on, and keeps the cuts for the report."""

    config: Config
    freshness: FreshnessMeter
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

    def read(self) -> Measurement:
        """Take in the newest cuts and return the figures of this moment."""
        self._follow()
        return Measurement(
            seconds=time.monotonic() - self._started,
            landed=_events(self._offsets()) - self._landed,
            applied=sum(row.transactions for row in self.rows),
            freshness=percentile(sorted(self.freshness.seconds[-RECENT:]), 0.5),
            oldest=self.freshness.oldest_waiting(time.time()),
        )

    def _follow(self) -> None:
        """Take in the cuts published since the last reading."""
        newest = self.rows[-1] if self.rows else self.first
        followed = newest.cut if newest else 0
        last = self._ledger.last()
        if last is None or last.cut == followed:
            return
        for row in self._ledger.rows(after=followed):
            self.rows.append(row)
            if row.lsn is not None:
                self.freshness.add_cut(lsn=row.lsn, at=row.published_at)

    def _offsets(self) -> Mapping[str, int]:
        landed = landed_position(log_path(self.config))
        return landed.offsets if landed else {}


def _events(offsets: Mapping[str, int]) -> int:
    """Return the number of offsets, which start at 0 and include Kafka's transaction markers."""
    return sum(offset + 1 for offset in offsets.values())
