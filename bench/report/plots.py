"""Draws the plots of a run, as SVG and PNG."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from bench.core.figure import Measured
from bench.report import derived_plots, live_plots, table_plots

mpl.rcParams["svg.hashsalt"] = "wal2lake"  # the same figures give the same file
_SIZE: Final = (10.0, 5.5)  # inches
_METADATA: Final = {"svg": {"Date": None}, "png": {"Software": None}}


def draw(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into ``folder``; return the SVG files, each with a PNG beside it."""
    made = []
    for name, title, plot in PLOTS:
        canvas = Canvas(figsize=_SIZE, layout="constrained")
        if not plot(measured, canvas):
            continue
        canvas.suptitle(title)
        for axes in canvas.axes:
            axes.grid(visible=True, alpha=0.3)
        for kind in ("svg", "png"):
            path = folder / f"{name}.{kind}"
            canvas.savefig(path, dpi=110, metadata=_METADATA[kind])
        made.append(folder / f"{name}.svg")
    return made


PLOTS: Final[tuple[tuple[str, str, Callable[[Measured, Canvas], bool]], ...]] = (
    (
        "freshness",
        "Freshness: from a commit in Postgres until it is read in the lake",
        live_plots.freshness,
    ),
    ("stages", "Stages of a round, from the job's histograms", live_plots.stages),
    (
        "cpu",
        "Processor time of each process, without Postgres but its walsenders",
        live_plots.costs,
    ),
    ("memory", "Memory of the job under load", live_plots.memory),
    ("memory-hour", "Memory of the job over time", live_plots.memory_over_time),
    (
        "apply-by-changes",
        "Applying changes to one table, by number of changes",
        table_plots.by_changes,
    ),
    ("apply-by-rows", "Applying changes to one table, by size of the table", table_plots.by_rows),
    ("files", "What a reader opens after each round", table_plots.files),
    ("before", "Beside the code of before, and beside what could be", table_plots.beside_before),
    ("peers", "Freshness beside Flink CDC and Paimon", live_plots.peers),
    ("derived-steps", "A step of a derived table, by query", derived_plots.steps),
    (
        "derived-freshness",
        "Freshness of captured tables, by what is derived from them",
        derived_plots.freshness,
    ),
    ("derived-catch-up", "A million events in one step", derived_plots.catching_up),
)
