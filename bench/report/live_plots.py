"""Plots of the whole: freshness, stages, processor time and memory."""

from collections.abc import Iterator, Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.core.figure import Figure, Measured
from bench.core.statistics import quantile
from bench.report.drawing import of_tables, plain_numbers, spread

_NOT_FOLLOWING: Final = ("postgres", "all but Postgres")
_STAGE_SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def freshness(measured: Measured, canvas: Canvas) -> bool:
    """Plot the distribution for each rate, side by side for each number of tables."""
    figures = measured.all_of("freshness")
    for place, (axes, here) in enumerate(_by_tables(figures, canvas)):
        spread(axes, [(f"{one.parameters['rate']:,} changes/s", one) for one in here])
        if place == 0:
            axes.set(ylabel="share of commits")
    return bool(figures)


def stages(measured: Measured, canvas: Canvas) -> bool:
    """Plot the quantiles of each stage, side by side for each number of tables."""
    figures = measured.all_of("stage")
    for axes, here in _by_tables(figures, canvas):
        for number, (label, share) in enumerate(_STAGE_SHARES.items()):
            places = [row + (number - 1) * 0.27 for row in range(len(here))]
            widths = [quantile(one.samples, share) for one in here]
            axes.barh(places, widths, height=0.25, label=label)
        axes.set_yticks(range(len(here)), [one.way for one in here])
        axes.invert_yaxis()
        axes.set(xlabel="seconds")
        axes.legend(fontsize="small")
    return bool(figures)


def costs(measured: Measured, canvas: Canvas) -> bool:
    """Plot processor seconds for each number of tables and rate, stacked by process."""
    figures = [
        one for one in measured.all_of("CPU per 100,000 changes") if one.way not in _NOT_FOLLOWING
    ]
    if not figures:
        return False
    axes = canvas.add_subplot()
    bars = list(dict.fromkeys(map(_bar, figures)))
    left = dict.fromkeys(bars, 0.0)
    for way in dict.fromkeys(one.way for one in figures):
        widths = {_bar(one): one.typical for one in figures if one.way == way}
        axes.barh(list(widths), list(widths.values()), left=[left[b] for b in widths], label=way)
        for bar, width in widths.items():
            left[bar] += width
    axes.invert_yaxis()
    axes.set(xlabel="CPU seconds per 100,000 changes")
    axes.legend(fontsize="small")
    return True


def memory(measured: Measured, canvas: Canvas) -> bool:
    """Plot the bytes of the job under each load of ``live``."""
    return _bytes_over_time(measured.all_of("memory under load"), canvas)


def memory_over_time(measured: Measured, canvas: Canvas) -> bool:
    """Plot the bytes of the job under a steady load, usually for an hour."""
    return _bytes_over_time(measured.all_of("memory over time"), canvas)


def _bytes_over_time(figures: Sequence[Figure], canvas: Canvas) -> bool:
    if not figures:
        return False
    axes = canvas.add_subplot()
    for one in figures:
        every = float(one.parameters["every_seconds"])
        seconds = [place * every for place in range(len(one.samples))]
        label = f"{one.way}, {of_tables(float(one.parameters['tables']))}"
        axes.plot(seconds, [value / 2**20 for value in one.samples], label=label)
    axes.set(xlabel="seconds", ylabel="MiB", ylim=(0, None))
    axes.legend(fontsize="small")
    return True


def peers(measured: Measured, canvas: Canvas) -> bool:
    """Plot the distribution of every run of both systems."""
    figures = measured.all_of("peer freshness of a run")
    if not figures:
        return False
    axes = canvas.add_subplot()
    spread(axes, [(f"{one.way}, run {one.parameters['run']}", one) for one in figures])
    axes.set(ylabel="share of commits")
    colours = {way: f"C{number}" for number, way in enumerate(_ways(figures))}
    for line, one in zip(axes.lines, figures, strict=False):
        line.set_color(colours[one.way])
        line.set_linestyle(("-", "--", ":")[(int(one.parameters["run"]) - 1) % 3])
    axes.legend(fontsize="small")
    plain_numbers(axes.xaxis)
    return True


def _ways(figures: Sequence[Figure]) -> list[str]:
    return list(dict.fromkeys(one.way for one in figures))


def _by_tables(figures: Sequence[Figure], canvas: Canvas) -> Iterator[tuple[Axes, list[Figure]]]:
    """Yield axes for each number of tables, side by side, and the figures that belong there."""
    counts = sorted({float(one.parameters["tables"]) for one in figures})
    for place, tables in enumerate(counts):
        axes = canvas.add_subplot(1, len(counts), place + 1)
        axes.set(title=of_tables(tables))
        yield axes, [one for one in figures if one.parameters["tables"] == tables]


def _bar(figure: Figure) -> str:
    tables = of_tables(float(figure.parameters["tables"]))
    return f"{tables}, {figure.parameters['rate']:,} changes/s"
