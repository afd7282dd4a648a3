"""Show the demo live: as a table on a terminal, as plain lines elsewhere."""

import math
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cdc.demo.meter import Measurement
from cdc.demo.workload import Workload

LINE_EVERY: Final = 10.0  # seconds between plain lines


class LiveDisplay:
    """Shows the progress of the live phase; use it as a context manager."""

    def __init__(self, console: Console, *, seconds: float) -> None:
        self._console = console
        self._seconds = seconds
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._next_line = LINE_EVERY

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, workload: Workload, reading: Measurement) -> None:
        """Update the table, or print a line every ``LINE_EVERY`` seconds."""
        if self._console.is_terminal:
            self._live.update(_table(workload, reading, self._seconds), refresh=True)
        elif reading.seconds >= self._next_line:
            self._next_line += LINE_EVERY
            self._console.print(_line(workload, reading), soft_wrap=True, highlight=False)


def _table(workload: Workload, reading: Measurement, seconds: float) -> Table:
    table = Table(title=f"live: {reading.seconds:.0f} of {seconds:.0f} s", title_justify="left")
    for name in ("", "so far", "per second"):
        table.add_column(name, justify="left" if not name else "right", min_width=12)
    for name, count in (
        ("source commits", workload.commits),
        ("source changes", workload.changes.total()),
        ("landed events", reading.landed),
        ("applied commits", reading.applied),
    ):
        table.add_row(name, f"{count:,}", f"{count / max(reading.seconds, 0.1):,.0f}")
    table.add_section()
    table.add_row("freshness p50", _seconds(reading.freshness), "")
    table.add_row("oldest waiting", _seconds(reading.oldest), "")
    return table


def _line(workload: Workload, reading: Measurement) -> str:
    return (
        f"  {reading.seconds:4.0f} s: {workload.commits:,} source commits,"
        f" {reading.landed:,} events landed, {reading.applied:,} commits applied,"
        f" freshness p50 {_seconds(reading.freshness)},"
        f" oldest waiting {_seconds(reading.oldest)}"
    )


def _seconds(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f} s"
