"""Run and measure the stages with the shop, for the demo and the benchmark."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cdc.config import Config
from cdc.demo.demo_directory import DemoDirectory
from cdc.demo.meter import Measurement, Meter
from cdc.demo.workload import Workload
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.stack.process.stack_report import read
from cdc.state.directory import StateDir
from cdc.tables import TableState
from cdc.waiting import poll

CONNECTING: Final = "connecting to the source"  # the supervisor's message
_LOOK_EVERY_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Holds what was measured of the snapshot: rows by table, and its duration."""

    rows: Mapping[str, int]
    seconds: float  # from the connector's start to the first cut after the snapshot

    @property
    def rate(self) -> float:
        """Return the rows per second."""
        return sum(self.rows.values()) / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Holds what was measured of the live phase; ``changes`` are rows by table."""

    commits: int
    changes: Counter[str]
    seconds: float  # from the first commit until the last one was readable
    freshness: tuple[float, ...]  # in seconds, of the commits that were sampled

    @property
    def rate(self) -> float:
        """Return the changes per second."""
        return self.changes.total() / self.seconds


def bring_up(directory: DemoDirectory, config: Config) -> float:
    """Start everything; return when the connector was started, in seconds since 1970."""
    directory.command("up", "--detach")
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
    """Wait for the first cut after the snapshot; ``on_rows`` gets the number of rows so far.

    ``began`` is in seconds since 1970. Raises TIMEOUT after ``timeout`` seconds.
    """
    ledger = Ledger(ledger_path(config))

    def streaming() -> LedgerRow | None:
        last = ledger.last()
        if last is None:
            return None
        on_rows(sum(e.rows_applied for e in last.tables if e.table.startswith("shop.")))
        read = all(entry.state != TableState.SNAPSHOTTING.value for entry in last.tables)
        return last if last.lsn is not None and read else None

    cut = poll(streaming, bool, every=_LOOK_EVERY_SECONDS, seconds=timeout)
    if cut is None:
        raise CdcError(
            ErrorKind.TIMEOUT, f"the snapshot was not readable after {timeout:.0f} seconds"
        )
    return Snapshot(rows=rows, seconds=cut.published_at.timestamp() - began)


def keep_busy(
    workload: Workload, meter: Meter, *, seconds: float, on_reading: Callable[[Measurement], None]
) -> None:
    """Let the writers work for ``seconds``, taking a reading twice a second."""

    def over() -> bool:
        workload.check()
        on_reading(reading := meter.read())
        return reading.seconds >= seconds

    with workload:
        poll(over, bool, every=_LOOK_EVERY_SECONDS, seconds=seconds + 60)


def measure_live(meter: Meter, workload: Workload) -> Live:
    """Return the figures of the live phase; call this after a sync.

    Only then is there surely a cut that contains the last commit.
    """
    meter.read()
    return Live(
        commits=workload.commits,
        changes=workload.changes,
        seconds=readable_at(meter, workload.last_commit_at) - workload.started_at,
        freshness=tuple(workload.freshness.seconds),
    )


def readable_at(meter: Meter, committed_at: float) -> float:
    """Return when the first cut that reaches this commit time was published, now if none was.

    All times are in seconds since 1970.
    """
    times = (
        row.published_at.timestamp()
        for row in meter.rows
        if row.committed_at and row.committed_at.timestamp() >= committed_at
    )
    return next(times, time.time())
