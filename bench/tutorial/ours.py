"""Measures wal2lake: a snapshot, a burst for throughput, a steady load for freshness."""

from collections.abc import Mapping
from dataclasses import dataclass

from deltalake import DeltaTable
from rich.console import Console

from bench.tutorial.burst import Burst, burst
from bench.tutorial.figures import Figures, p50_p99
from cdc.client.read.sql import query
from cdc.config import Config
from cdc.demo.demo_directory import DemoDirectory
from cdc.demo.freshness_meter import FreshnessMeter
from cdc.demo.meter import Meter
from cdc.demo.stages import await_snapshot, bring_up, keep_busy, readable_at
from cdc.demo.workload import Workload
from cdc.lake.layout import log_path
from cdc.state.pipeline import resolve

PLACEHOLDERS = (
    "select count(*) as found from shop.product_descriptions where length(description) < 1000"
)
"""Every description has about 10 000 characters; a shorter one is not the source's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load with which both ways are measured."""

    rows: Mapping[str, int]
    transactions: int  # in the burst
    seconds: float  # of the steady load
    rate: float
    seed: int

    def workload(self, url: str) -> Workload:
        """Return the writers of the steady load."""
        return Workload(url=url, sizes=self.rows, rate=self.rate, seed=self.seed)


def measure(directory: DemoDirectory, config: Config, load: Load, console: Console) -> Figures:
    """Start wal2lake, put the load on it, verify the lake and return the figures."""
    began = bring_up(directory, config)
    snapshot = await_snapshot(config, load.rows, began=began, timeout=900)
    console.print(f"  snapshot: {snapshot.rate:,.0f} rows/s", highlight=False)
    directory.command("sync")
    landed, applied = _burst(directory, config, load)
    console.print(f"  burst: {landed:,.0f} landed/s, {applied:,.0f} applied/s", highlight=False)
    p50, p99 = p50_p99(_steady(directory, config, load))
    directory.command("verify")
    return Figures(
        snapshot_rows_per_second=snapshot.rate,
        landed_events_per_second=landed,
        applied_changes_per_second=applied,
        freshness_p50_seconds=p50,
        freshness_p99_seconds=p99,
        values_lost=query(config, PLACEHOLDERS).rows.to_pylist()[0]["found"],
    )


def _burst(directory: DemoDirectory, config: Config, load: Load) -> tuple[float, float]:
    meter = Meter(config=config, freshness=FreshnessMeter())
    done = burst(resolve(config).endpoints.source_url, transactions=load.transactions)
    directory.command("sync", "--timeout", "900")
    meter.read()
    seconds = readable_at(meter, done.last_commit_at) - done.began
    return _landing_rate(config, done, seconds), done.changes / seconds


def _landing_rate(config: Config, done: Burst, seconds: float) -> float:
    """Return the landed events per second until the end of the burst, from the log's commits."""
    until = done.began + seconds
    landings = [
        (float(commit["timestamp"]) / 1000, int(commit["operationMetrics"]["numOutputRows"]))
        for commit in DeltaTable(log_path(config)).history()
        if "numOutputRows" in commit.get("operationMetrics", {})
        and done.began <= commit["timestamp"] / 1000 <= until
    ]
    last = max(at for at, _ in landings)
    return sum(count for _, count in landings) / (last - done.began)


def _steady(directory: DemoDirectory, config: Config, load: Load) -> list[float]:
    workload = load.workload(resolve(config).endpoints.source_url)
    meter = Meter(config=config, freshness=workload.freshness)
    keep_busy(workload, meter, seconds=load.seconds, on_reading=lambda _: None)
    directory.command("sync", "--timeout", "900")
    meter.read()
    return workload.freshness.seconds
