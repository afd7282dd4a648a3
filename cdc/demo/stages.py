"""What a run with the shop goes through, measured; the demonstration and the benchmark share it."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cdc.config import Config
from cdc.demo.meter import Meter, Reading
from cdc.demo.place import Place
from cdc.demo.workload import Workload
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.stack.process.report import read
from cdc.state.directory import StateDir
from cdc.waiting import poll

CONNECTING: Final = "connecting the source"  # as the supervisor says it
_LOOK_EVERY_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    rows: Mapping[str, int]
    seconds: float  # from the connector's start to the first cut of the stream

    @property
    def rate(self) -> float:
        return sum(self.rows.values()) / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    commits: int
    changes: Counter[str]
    seconds: float  # from the first commit until the last one was readable
    freshness: tuple[float, ...]  # seconds, of the commits that were noted

    @property
    def rate(self) -> float:
        return self.changes.total() / self.seconds


def bring_up(place: Place, config: Config) -> float:
    """Start everything; returns when the connector was started."""
    place.command("up", "--detach")
    events = read(StateDir(config.state_dir))["events"]
    (at,) = (event["at"] for event in events if event["what"] == CONNECTING)
    return datetime.fromisoformat(at).timestamp()


def await_snapshot(
    config: Config,
    rows: Mapping[str, int],
    *,
    began: float,
    timeout: float,
    on_rows: Callable[[int], None] = lambda _: None,
) -> Snapshot:
    """Wait for the first cut of the stream; ``on_rows`` hears how many rows have arrived."""
    ledger = Ledger(ledger_path(config))

    def streaming() -> LedgerRow | None:
        last = ledger.last()
        if last is None:
            return None
        on_rows(sum(e.rows_applied for e in last.tables if e.table.startswith("shop.")))
        return last if last.lsn is not None else None

    cut = poll(streaming, bool, every=_LOOK_EVERY_SECONDS, seconds=timeout)
    if cut is None:
        raise CdcError(
            ErrorKind.TIMEOUT, f"the snapshot was not readable after {timeout:.0f} seconds"
        )
    return Snapshot(rows=rows, seconds=cut.published_at.timestamp() - began)


def keep_busy(
    workload: Workload, meter: Meter, *, seconds: float, on_reading: Callable[[Reading], None]
) -> None:
    """Let the writers work for so long, taking a reading twice a second."""

    def over() -> bool:
        workload.check()
        on_reading(reading := meter.read())
        return reading.seconds >= seconds

    with workload:
        poll(over, bool, every=_LOOK_EVERY_SECONDS, seconds=seconds + 60)


def measured(meter: Meter, workload: Workload) -> Live:
    """To be called after a sync: a cut that holds the last commit is there to be found."""
    meter.read()
    return Live(
        commits=workload.commits,
        changes=workload.changes,
        seconds=readable_at(meter, workload.last_commit_at) - workload.started_at,
        freshness=tuple(workload.freshness.seconds),
    )


def readable_at(meter: Meter, committed_at: float) -> float:
    """When the first cut that reaches this commit time was published; now, if none did."""
    times = (
        row.published_at.timestamp()
        for row in meter.rows
        if row.committed_at and row.committed_at.timestamp() >= committed_at
    )
    return next(times, time.time())
