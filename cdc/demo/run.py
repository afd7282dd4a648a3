"""The demonstration from nothing to nothing running, step by step."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import psycopg
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc.config import Config
from cdc.demo import report, shop
from cdc.demo.display import Display
from cdc.demo.meter import Meter
from cdc.demo.place import Place
from cdc.demo.source import filled_source
from cdc.demo.workload import Workload
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.ledger import Ledger, LedgerRow
from cdc.stack.endpoints import resolve
from cdc.stack.report import read
from cdc.stack.state import StateDir

Answer = TypeVar("Answer")
STEPS = 7
CONNECTING = "connecting the source"  # as the supervisor says it


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    seconds: float
    rate: float  # transactions per second
    rows: int  # at least so many for the snapshot
    seed: int
    snapshot_timeout: float = 900


@dataclass(kw_only=True)
class Demo:
    """One run; ``step`` is what it was at when it failed."""

    place: Place
    options: Options
    console: Console
    step: str = "set-up"
    _number: int = field(default=0)

    def run(self) -> None:
        config = self.place.create()
        with self._doing("shop") as say:
            rows = filled_source(config, scale=self.options.rows / shop.ROWS_AT_SCALE_ONE)
            say(f"{sum(rows.values()):,} rows in {len(rows)} tables of an embedded Postgres")
        with self._doing("stack"):
            began = self._up(config)
        with self._doing("snapshot") as say:
            snapshot = self._snapshot(config, rows, began)
            say(f"{sum(rows.values()):,} rows readable after {snapshot.seconds:.1f} s")
        with self._doing("live"):
            meter, workload = self._live(config, rows)
        with self._doing("sync"):
            self.place.command("sync")
        live = _measured(meter, workload)
        with self._doing("verify"):
            self.place.command("verify")
        with self._doing("report"):
            self._report(config, snapshot, live, meter)

    @contextmanager
    def _doing(self, step: str) -> Iterator[Callable[[str], None]]:
        """Name the step, so that a failure can; say what it gave and how long it took."""
        self.step, self._number = step, self._number + 1
        self.console.print(f"[bold cyan]{self._number}/{STEPS} {step}[/bold cyan]")
        began = time.monotonic()
        results: list[str] = []
        yield results.append
        took = f"{time.monotonic() - began:.1f} s"
        self.console.print("  " + ", ".join([*results, took]), style="dim", highlight=False)

    def _up(self, config: Config) -> float:
        """Start everything; returns when the connector was started."""
        self.place.command("up", "--detach")
        events = read(StateDir(config.state_dir))["events"]
        (at,) = (event["at"] for event in events if event["what"] == CONNECTING)
        return datetime.fromisoformat(at).timestamp()

    def _snapshot(self, config: Config, rows: dict[str, int], began: float) -> report.Snapshot:
        """Wait for the first cut of the stream, showing how many rows have arrived."""
        ledger = Ledger(ledger_path(config))
        with _bar(self.console) as bar:
            task = bar.add_task("  rows", total=sum(rows.values()))

            def streaming() -> LedgerRow | None:
                last = ledger.last()
                if last is not None:
                    applied = (e.rows_applied for e in last.tables if e.table.startswith("shop."))
                    bar.update(task, completed=sum(applied))
                return last if last is not None and last.lsn is not None else None

            cut = _await(streaming, self.options.snapshot_timeout)
        if cut is None:
            raise CdcError(
                ErrorKind.TIMEOUT,
                f"the snapshot was not readable after {self.options.snapshot_timeout:.0f} s",
            )
        return report.Snapshot(rows=rows, seconds=cut.published_at.timestamp() - began)

    def _live(self, config: Config, rows: dict[str, int]) -> tuple[Meter, Workload]:
        workload = Workload(
            url=resolve(config).source_url,
            sizes=rows,
            rate=self.options.rate,
            seed=self.options.seed,
        )
        meter = Meter(config=config, freshness=workload.freshness)

        def over() -> bool:
            workload.check()
            display.show(workload, reading := meter.read())
            return reading.seconds >= self.options.seconds

        with workload, Display(self.console, seconds=self.options.seconds) as display:
            _await(over, self.options.seconds + 60)
        return meter, workload

    def _report(
        self, config: Config, snapshot: report.Snapshot, live: report.Live, meter: Meter
    ) -> None:
        with psycopg.connect(resolve(config).source_url) as conn:
            source = shop.count(conn)
        lake = report.lake_rows(config)
        report.print_tables(self.console, snapshot=snapshot, live=live, source=source, lake=lake)
        equal = f"equal, every row and value of {len(lake)} tables, {sum(lake.values()):,} rows"
        report.print_figures(self.console, snapshot=snapshot, live=live, verified=equal)
        self._ask(report.BESTSELLERS)
        self._ask(report.BY_STATUS)
        if meter.first is not None:
            self._ask(report.BY_STATUS, "--at", str(meter.first.cut))
        report.print_farewell(self.console, config, self.place.config_file)

    def _ask(self, query: str, *at: str) -> None:
        shown = " ".join(at)
        self.console.print(f'\n$ wal2lake sql "{query}" {shown}', style="green", highlight=False)
        self.place.command("sql", query, *at)


def _measured(meter: Meter, workload: Workload) -> report.Live:
    """After the sync: every commit is covered by a cut that the meter can read."""
    meter.read()
    covered = (
        row.published_at.timestamp()
        for row in meter.rows
        if row.committed_at and row.committed_at.timestamp() >= workload.last_commit_at
    )
    ended = next(covered, time.time())
    return report.Live(
        commits=workload.commits,
        changes=workload.changes,
        seconds=ended - workload.started_at,
        freshness=tuple(workload.freshness.seconds),
    )


def _await(condition: Callable[[], Answer], seconds: float) -> Answer | None:
    """Ask twice a second until the answer is true; None when the time is over."""
    waiting = Retrying(
        retry=retry_if_result(lambda answer: not answer),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(0.5),
        retry_error_callback=lambda _: None,
    )
    return waiting(condition)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
