"""Runs the demo step by step."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from cdc.config import Config
from cdc.demo import marts, report, shop
from cdc.demo.demo_directory import DemoDirectory
from cdc.demo.display import LiveDisplay
from cdc.demo.meter import Meter
from cdc.demo.source import filled_source
from cdc.demo.stages import Live, Snapshot, await_snapshot, bring_up, keep_busy, measure_live
from cdc.demo.workload import Workload
from cdc.state.pipeline import resolve

STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Holds the options of a run; times are in seconds."""

    seconds: float
    rate: float  # transactions per second
    rows: int  # minimum number of rows to snapshot
    seed: int
    snapshot_timeout: float = 900
    sync_timeout: float = 300


@dataclass(kw_only=True)
class Demo:
    """Runs the demo once; ``step`` names the current step, for the message of a failure."""

    directory: DemoDirectory
    options: Options
    console: Console
    step: str = "set-up"
    _number: int = field(default=0)

    def run(self) -> None:
        """Run all steps; raises the error of the one that fails and leaves the stack running."""
        config = self.directory.create()
        self.directory.define(marts.DEFINITIONS)
        with self._doing("shop") as say:
            rows = filled_source(config, scale=self.options.rows / shop.ROWS_AT_SCALE_ONE)
            say(f"{sum(rows.values()):,} rows in {len(rows)} tables of an embedded Postgres")
        with self._doing("stack"):
            began = bring_up(self.directory, config)
        with self._doing("snapshot") as say:
            snapshot = self._snapshot(config, rows, began)
            say(f"{sum(rows.values()):,} rows readable after {snapshot.seconds:.1f} s")
        with self._doing("live"):
            meter, workload = self._live(config, rows)
        marts.run_script(config, "example.sql")
        with self._doing("sync"):
            self.directory.command("sync")
        live = measure_live(meter, workload)
        with self._doing("verify"):
            self.directory.command("verify")
        with self._doing("report"):
            self._report(config, snapshot, live, meter)
        with self._doing("derived"):
            self._move(config, meter)
        report.print_farewell(self.console, config, self.directory.config_file)

    @contextmanager
    def _doing(self, step: str) -> Iterator[Callable[[str], None]]:
        """Print the step's heading, then its results and how long it took."""
        self.step, self._number = step, self._number + 1
        self.console.print(f"[bold cyan]{self._number}/{STEPS} {step}[/bold cyan]")
        began = time.monotonic()
        results: list[str] = []
        yield results.append
        took = f"{time.monotonic() - began:.1f} s"
        self.console.print("  " + ", ".join([*results, took]), style="dim", highlight=False)

    def _snapshot(self, config: Config, rows: dict[str, int], began: float) -> Snapshot:
        with _bar(self.console) as bar:
            task = bar.add_task("  rows", total=sum(rows.values()))
            return await_snapshot(
                config,
                rows,
                began=began,
                timeout=self.options.snapshot_timeout,
                on_rows=lambda arrived: bar.update(task, completed=arrived),
            )

    def _live(self, config: Config, rows: dict[str, int]) -> tuple[Meter, Workload]:
        workload = Workload(
            url=resolve(config).endpoints.source_url,
            sizes=rows,
            rate=self.options.rate,
            seed=self.options.seed,
        )
        meter = Meter(config=config, freshness=workload.freshness)
        seconds = self.options.seconds
        with LiveDisplay(self.console, seconds=seconds) as display:
            keep_busy(
                workload,
                meter,
                seconds=seconds,
                on_reading=lambda reading: display.show(workload, reading),
            )
        return meter, workload

    def _report(self, config: Config, snapshot: Snapshot, live: Live, meter: Meter) -> None:
        with psycopg.connect(resolve(config).endpoints.source_url) as conn:
            source = shop.count(conn)
        lake = report.lake_rows(config)
        report.print_tables(self.console, snapshot=snapshot, live=live, source=source, lake=lake)
        equal = f"equal: every row and value of {len(lake)} tables, {sum(lake.values()):,} rows"
        report.print_figures(self.console, snapshot=snapshot, live=live, verified=equal)
        self._ask("sql", report.BESTSELLERS)
        self._ask("sql", report.BY_STATUS)
        if meter.first is not None:
            self._ask("sql", report.BY_STATUS, "--at", str(meter.first.cut))

    def _ask(self, *command: str) -> None:
        words = " ".join(f'"{word}"' if " " in word else word for word in command)
        line = f"\n$ wal2lake {words}"
        self.console.print(line, style="green", highlight=False, soft_wrap=True)
        self.directory.command(*command)

    def _move(self, config: Config, meter: Meter) -> None:
        before = marts.read_marts(config)
        marts.run_script(config, "changes.sql")
        cut = marts.await_marts(config, timeout=self.options.sync_timeout)
        marts.print_moves(self.console, before, marts.read_marts(config))
        self._ask("derived", "verify", "--at", str(cut))
        self._ask("derived", "verify", "--source", *marts.BY_SOURCE)
        meter.read()
        line = f"[bold]lag[/bold]        {marts.lag_line(meter.rows)}"
        self.console.print(line, highlight=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
