"""Show a running operation: as a bar on a terminal, as lines in a pipe, or as JSON."""

import json
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cdc.state.operation import Operation, OperationState, Progress

BAR_WIDTH: Final = 30
MINUTE: Final = 60
HOUR: Final = 3600
NO_JOB: Final = "the job is not running; the operation continues after wal2lake up"


class ProgressDisplay(Protocol):
    """Shows progress; use it as a context and call ``show`` after every look."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, progress: Progress, *, job_alive: bool) -> None:
        """Show the progress that was just read, and whether the job runs."""


def display(operation: Operation, console: Console, *, as_json: bool) -> ProgressDisplay:
    """Return the display for the console: JSON if asked for, else a bar on a terminal or lines."""
    if as_json:
        return JsonLines()
    return Bar(operation, console) if console.is_terminal else Lines(console)


class Bar:
    """Redraws a bar in place, and removes it at the end."""

    def __init__(self, operation: Operation, console: Console) -> None:
        self._operation = operation
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, progress: Progress, *, job_alive: bool) -> None:
        """Redraw the bar."""
        self._live.update(drawn(self._operation, progress, job_alive=job_alive), refresh=True)


class _Plain:
    """Shows progress without anything to set up or to clean up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class Lines(_Plain):
    """Prints a line each time the table, the phase or the state changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def show(self, progress: Progress, *, job_alive: bool) -> None:
        """Print a line if it differs from the last one and the operation has not ended."""
        if progress.state.ended:
            return  # the outcome is printed elsewhere
        line = place(progress) if job_alive else NO_JOB
        if line != self._last:
            self._last = line
            self._console.print(Text(line), soft_wrap=True)


class JsonLines(_Plain):
    """Prints one JSON object per line for each change, but none for the end."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def show(self, progress: Progress, *, job_alive: bool) -> None:
        """Print the progress if anything in it is new and the operation has not ended."""
        facts = {**live_facts(progress), "job_alive": job_alive}
        if facts != self._last and not progress.state.ended:
            self._last = facts
            print(json.dumps(facts), flush=True)


def live_facts(progress: Progress) -> dict[str, Any]:
    """Return the progress as an object for JSON; ``rate`` is in rows per second."""
    return {
        "id": progress.id,
        "state": progress.state.value,
        "phase": progress.phase,
        "table": progress.table,
        "tables_done": progress.tables_done,
        "tables": progress.tables,
        "chunks": progress.chunks,
        "rows": progress.rows,
        "rows_expected": progress.rows_expected,
        "rate": _rounded(progress.rate),
        "eta_seconds": _rounded(progress.eta_seconds),
        "seconds": _rounded(progress.seconds),
    }


def drawn(operation: Operation, progress: Progress, *, job_alive: bool) -> RenderableType:
    """Return what ``Bar`` draws: table and phase, the bar, the counts, and whether the job runs."""
    head = Text.assemble((operation.command, "bold"), f" {place(progress)}")
    if job_alive:
        return Group(head, _bar_and_counts(progress))
    without_rate = replace(progress, counted_from=None)  # no rows are read without a job
    return Group(head, _bar_and_counts(without_rate), Text(NO_JOB, "yellow"))


def _bar_and_counts(progress: Progress) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    cells: list[RenderableType] = [Text(text) for text in counts(progress)]
    if progress.rows_expected:
        done = min(progress.rows, progress.rows_expected)
        share = Text(f"{100 * done // progress.rows_expected}%")
        bar = ProgressBar(total=progress.rows_expected, completed=done, width=BAR_WIDTH)
        cells = [bar, share, *cells]
    grid.add_row(*cells)
    return grid


def place(progress: Progress) -> str:
    """Return the table, its number and the phase, as ``shop.orders (1 of 3): reading``."""
    phase = progress.phase or progress.state.value
    if progress.state is OperationState.PAUSED:
        phase = f"paused, {progress.phase}" if progress.phase else "paused"
    if not progress.table:
        return phase
    number = min(progress.tables_done + 1, progress.tables)
    several = f" ({number} of {progress.tables})" if progress.tables > 1 else ""
    return f"{progress.table}{several}: {phase}"


def counts(progress: Progress) -> list[str]:
    """Return chunks, rows, rows per second and the time left, as far as they are known."""
    parts = []
    if progress.chunks:
        parts.append(f"{progress.chunks:,} chunk{'' if progress.chunks == 1 else 's'}")
    if progress.rows_expected:
        parts.append(f"{progress.rows:,} of {progress.rows_expected:,} rows")
    elif progress.rows:
        parts.append(f"{progress.rows:,} row{'' if progress.rows == 1 else 's'}")
    if progress.state is OperationState.RUNNING and progress.rate is not None:
        parts.append(f"{progress.rate:,.0f} rows/s")
        if progress.eta_seconds is not None:
            parts.append(f"{duration(progress.eta_seconds)} left")
    return parts


def duration(seconds: float) -> str:
    """Return the duration in two units at most: ``4 s``, ``3 min 07 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE:02} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE:02} min"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
