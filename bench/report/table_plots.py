"""Plots of one table: applying to it, its files, and how much is gained on before."""

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.core.figure import Figure, Measured
from bench.report.drawing import of_tables, plain_numbers

_FILES: Final = {
    "data files": 1.0,
    "bytes of the transaction log": 1 / 1024,
}
_BESIDE: Final = (("round", "seconds of a round"), ("start", "seconds until it applies"),
                  ("snapshot", "rows per second of the first snapshot"))  # fmt: skip


def by_changes(measured: Measured, canvas: Canvas) -> bool:
    """Plot the seconds of a batch by its number of changes."""
    return _apply_by(measured, canvas, "changes", "rows")


def by_rows(measured: Measured, canvas: Canvas) -> bool:
    """Plot the seconds of a batch by the rows of the table."""
    return _apply_by(measured, canvas, "rows", "changes")


def _apply_by(measured: Measured, canvas: Canvas, over: str, fixed: str) -> bool:
    """Plot the seconds of an apply over one parameter, for the commonest value of the other."""
    figures = measured.all_of("apply", keys="uniform")
    values = [one.parameters[fixed] for one in figures]
    if not values:
        return False
    axes = canvas.add_subplot()
    usual = max(sorted(set(values), key=str), key=values.count)
    kept = [one for one in figures if one.parameters[fixed] == usual]
    for number, way in enumerate(dict.fromkeys(one.way for one in measured.all_of("apply"))):
        _line(axes, [one for one in kept if one.way == way], over, way, f"C{number}")
    label = f"{over} ({fixed}: {usual:,})"
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel="seconds")
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return True


def _line(axes: Axes, figures: Sequence[Figure], over: str, label: str, colour: str) -> None:
    """Plot medians as a line, and all samples as points."""
    ordered = sorted(figures, key=lambda one: float(one.parameters[over]))
    places = [float(one.parameters[over]) for one in ordered]
    medians = [one.typical for one in ordered]
    axes.plot(places, medians, marker="o", label=label, color=colour)
    for place, one in zip(places, ordered, strict=True):
        axes.scatter([place] * len(one.samples), one.samples, s=8, color=colour,
                     alpha=0.5)  # fmt: skip


def files(measured: Measured, canvas: Canvas) -> bool:
    """Plot the files and the bytes of the log that a reader opens, after every round."""
    for place, (name, factor) in enumerate(_FILES.items()):
        samples = [
            value * factor
            for at in ("half", "end")
            for one in measured.all_of(name, at=at)
            for value in one.samples
        ]
        if not samples:
            return False
        axes = canvas.add_subplot(2, 1, place + 1)
        axes.plot(range(1, len(samples) + 1), samples)
        unit = "files" if factor == 1 else "KiB"
        axes.set(title=name, ylabel=unit, xlabel="round", ylim=(0, None))
    return True


def beside_before(measured: Measured, canvas: Canvas) -> bool:
    """Plot medians of ours, of before and of what could be, as bars with their numbers."""
    shown = [(title, found) for name, title in _BESIDE if (found := measured.all_of(name))]
    for place, (title, figures) in enumerate(shown):
        axes = canvas.add_subplot(len(shown), 1, place + 1)
        names = [_name(one) for one in figures]
        bars = axes.barh(names, [one.typical for one in figures], color=list(map(_colour, figures)))
        axes.bar_label(bars, [f"{one.typical:,.3g}" if one.typical < 1000 else  # noqa: PLR2004
                              f"{one.typical:,.0f}" for one in figures], padding=3)  # fmt: skip
        axes.set(title=title)
        axes.margins(x=0.15)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    return bool(shown)


def _name(figure: Figure) -> str:
    if figure.name != "start":
        return figure.way
    return f"{figure.way}, {of_tables(float(figure.parameters['tables']))}"


def _colour(figure: Figure) -> str:
    return {"ours": "C0", "before": "C3"}.get(figure.way, "C7")
