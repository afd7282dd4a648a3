"""The plots of a run, as SVG and PNG."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.core.figure import Figure, Measured
from bench.core.statistics import quantile

mpl.rcParams["svg.hashsalt"] = "wal2lake"  # the same figures give the same file
_SIZE: Final = (9.0, 5.0)  # inches
_METADATA: Final = {"svg": {"Date": None}, "png": {"Software": None}}


def draw(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into ``folder``; return the SVG files, each with a PNG beside it."""
    made = []
    for name, title, plot in PLOTS:
        canvas = Canvas(figsize=_SIZE, layout="constrained")
        axes = canvas.add_subplot()
        if not plot(measured, axes):
            continue
        axes.set_title(title)
        axes.grid(visible=True, alpha=0.3)
        for kind in ("svg", "png"):
            path = folder / f"{name}.{kind}"
            canvas.savefig(path, dpi=110, metadata=_METADATA[kind])
        made.append(folder / f"{name}.svg")
    return made


def _apply_by(measured: Measured, axes: Axes, over: str, fixed: str) -> bool:
    """Plot the seconds of an apply over one parameter, for the commonest value of the other."""
    figures = [one for one in measured.all_of("apply", keys="uniform") if one.unit == "s"]
    values = [one.parameters[fixed] for one in figures]
    if not values:
        return False
    usual = max(sorted(set(values), key=str), key=values.count)
    kept = [one for one in figures if one.parameters[fixed] == usual]
    for way in dict.fromkeys(one.way for one in kept):
        _line(axes, [one for one in kept if one.way == way], over, way)
    axes.set(xscale="log", yscale="log", xlabel=f"{over} ({fixed}: {usual:,})", ylabel="seconds")
    axes.legend()
    return True


def _line(axes: Axes, figures: Sequence[Figure], over: str, label: str) -> None:
    """Plot medians as a line, and all samples as points."""
    ordered = sorted(figures, key=lambda one: float(one.parameters[over]))
    places = [float(one.parameters[over]) for one in ordered]
    (line,) = axes.plot(places, [one.typical for one in ordered], marker="o", label=label)
    for place, one in zip(places, ordered, strict=True):
        axes.scatter([place] * len(one.samples), one.samples, s=8, color=line.get_color(),
                     alpha=0.5)  # fmt: skip


def _by_changes(measured: Measured, axes: Axes) -> bool:
    return _apply_by(measured, axes, "changes", "rows")


def _by_rows(measured: Measured, axes: Axes) -> bool:
    return _apply_by(measured, axes, "rows", "changes")


def _freshness(measured: Measured, axes: Axes) -> bool:
    return _spread(axes, _sorted(measured.all_of("freshness")), "s", log=True)


def _peers(measured: Measured, axes: Axes) -> bool:
    return _spread(axes, measured.all_of("peer freshness"), "s", log=True)


def _spread(axes: Axes, figures: Sequence[Figure], unit: str, *, log: bool) -> bool:
    """Plot the share of samples below each value, one line per figure."""
    for one in figures:
        shares = [place / 100 for place in range(101)]
        values = [quantile(one.samples, share) for share in shares]
        axes.plot(values, shares, label=_label(one))
    axes.set(xlabel=unit, ylabel="share of commits", xscale="log" if log else "linear")
    if figures:
        axes.legend()
    return bool(figures)


def _memory(measured: Measured, axes: Axes) -> bool:
    figures = measured.all_of("memory over time") + measured.all_of("memory under load")
    for one in figures:
        every = float(one.parameters["every_seconds"])
        seconds = [place * every for place in range(len(one.samples))]
        axes.plot(seconds, [value / 2**20 for value in one.samples], label=_label(one))
    axes.set(xlabel="seconds", ylabel="MiB", ylim=(0, None))
    if figures:
        axes.legend()
    return bool(figures)


def _costs(measured: Measured, axes: Axes) -> bool:
    figures = _sorted(measured.all_of("CPU per 100,000 changes", rate=500))
    names = [_label(one) for one in figures]
    axes.barh(names, [one.typical for one in figures])
    axes.set(xlabel="CPU seconds per 100,000 changes")
    return bool(figures)


def _sorted(figures: Iterable[Figure]) -> list[Figure]:
    return sorted(figures, key=lambda one: [str(v).rjust(12) for v in one.parameters.values()])


def _label(figure: Figure) -> str:
    return ", ".join([figure.way, *(f"{n} {v}" for n, v in figure.parameters.items())])


PLOTS: Final[tuple[tuple[str, str, Callable[[Measured, Axes], bool]], ...]] = (
    ("apply-by-changes", "Applying changes to one table, by number of changes", _by_changes),
    ("apply-by-rows", "Applying changes to one table, by size of the table", _by_rows),
    ("freshness", "Freshness: from a commit in Postgres until it is read in the lake", _freshness),
    ("cpu", "Processor time at 500 changes/s", _costs),
    ("memory", "Memory of the job", _memory),
    ("peers", "Freshness beside Flink CDC and Paimon", _peers),
)
