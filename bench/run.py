"""Runs benchmarks one after the other; one that fails does not stop the others."""

import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from bench.core import result_file
from bench.core.figure import Figure, Measured, NotMeasured, Outcome
from bench.core.reach import Row
from bench.core.result_file import Record
from bench.core.room import Benchmark, Room
from bench.report import page
from bench.report.plots import draw
from bench.report.tables import figure_table
from cdc.errors import CdcError

_PLACE: Final = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]*)")


def prepare(benchmarks: Iterable[Benchmark]) -> None:
    """Download what is missing. What does not arrive is named by the benchmark that needs it."""
    for benchmark in benchmarks:
        if benchmark.prepare is not None:
            with suppress(CdcError):
                benchmark.prepare()


def run(benchmarks: Iterable[Benchmark], room: Room) -> tuple[Measured, Record]:
    """Measure, and print the figures of each benchmark when it is done."""
    record, measured = Record(room.sizes, room.seed), Measured()
    for benchmark in benchmarks:
        if benchmark.bounded and not room.has_time():
            why = f"the {room.sizes.whole_seconds / 60:.0f} minutes of a run were over"
            measured = measured.plus([NotMeasured(name=benchmark.name, why=why)])
            continue
        room.console.print(f"[bold cyan]{benchmark.name}[/bold cyan] {benchmark.title}")
        began = time.monotonic()
        outcomes = list(outcomes_of(benchmark, room))
        measured = measured.plus(outcomes)
        _show(room.console, benchmark.name, outcomes)
        seconds = time.monotonic() - began
        measured = measured.plus([_duration(benchmark, seconds)])
        room.say(f"{seconds:.0f} s")
    return measured, record


def outcomes_of(benchmark: Benchmark, room: Room) -> Iterator[Outcome]:
    """Yield what the benchmark yields; an error becomes a part that was not measured."""
    try:
        yield from benchmark.measure(room)
    except Exception as error:  # noqa: BLE001 - of any benchmark: it is named in the result
        text = str(error).strip() or type(error).__name__
        line = without_places(text.splitlines()[0][:300])
        yield NotMeasured(name=benchmark.name, why=f"it failed: {line}")


def without_places(text: str) -> str:
    """Return the text without the directories in it: a result must not name those of a machine."""
    return _PLACE.sub(r"\1", text)


def _duration(benchmark: Benchmark, seconds: float) -> Figure:
    return Figure(name="duration", way=benchmark.name, unit="s", samples=(seconds,))


def _show(console: Console, name: str, outcomes: Sequence[Outcome]) -> None:
    figures = [one for one in outcomes if isinstance(one, Figure)]
    if figures:
        console.print(figure_table(name, figures))
    for one in outcomes:
        if isinstance(one, NotMeasured):
            console.print(f"  not measured: {one.name}: {one.why}", style="yellow", highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Where the results of a run go, and what they are compared with."""

    name: str
    rows: Sequence[Row]
    folder: Path
    flames: Path  # folder of the run's flame graphs

    def write(self, measured: Measured, record: Record) -> None:
        """Write the JSON first, then the plots and, if it is beside the folder, the page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        values = record.values(measured)
        result_file.write(self.folder / f"{self.name}.json", values)
        plots = draw(measured, self.folder)
        if measured.all_of("profile"):
            copied = [_copied(graph, self.folder) for graph in sorted(self.flames.glob("*"))]
            plots += [graph for graph in copied if graph.suffix == ".svg"]
        text = self.folder.parent / f"{self.folder.name}.md"
        if text.exists():
            section = page.section(self.rows, values, measured, plots)
            text.write_text(page.fill(text.read_text(), self.name, section))


def _copied(file: Path, folder: Path) -> Path:
    return Path(shutil.copy2(file, folder / file.name))
