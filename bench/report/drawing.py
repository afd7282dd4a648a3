"""Draws what several plots have: samples as a distribution, and axes with plain numbers."""

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bench.core.figure import Figure
from bench.core.statistics import quantile

_SHARES: Final = [place / 100 for place in range(101)]
_FEW_DECADES: Final = 100.0


def spread(axes: Axes, figures: Sequence[tuple[str, Figure]]) -> None:
    """Plot the share of samples below each value, one line per figure with its label."""
    for label, one in figures:
        values = [max(quantile(one.samples, share), 0.001) for share in _SHARES]
        axes.plot(values, _SHARES, label=label)
    axes.set(xlabel="seconds", xscale="log", ylim=(0, 1))
    for share in (0.5, 0.99):
        axes.axhline(share, color="grey", linewidth=0.8, linestyle=":")
    plain_numbers(axes.xaxis)
    axes.legend(fontsize="small")


def of_tables(count: float) -> str:
    """Return the number of tables in words."""
    return f"{count:g} {'table' if count == 1 else 'tables'}"


def plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with numbers instead of powers; between decades too if it is short.

    Call it when everything is plotted.
    """
    low, high = axis.get_view_interval()
    between = (1.0, 2.0, 5.0) if high / max(low, 1e-9) < _FEW_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(subs=between))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
