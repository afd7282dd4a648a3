"""What issue 28 asks for, and how each row is computed from the figures of a run. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.core.figure import Figure, Measured
from bench.core.statistics import quantile, times_cheaper

MIB: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row of the table: the figure of ours, the ratio that counts, and whether it is met."""

    figure: str
    ratio: float | None
    met: bool | None  # None: it was not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing to reach; ``benchmarks`` are the names of those whose figures it needs."""

    what: str
    reach: str
    benchmarks: tuple[str, ...]
    compute: Callable[[Measured], Result]


NOT_MEASURED: Final = Result(figure="not measured", ratio=None, met=None)


def compared(
    ours: Figure | None, other: Figure | None, *, at_least: float, more_is_better: bool = False
) -> Result:
    """Return how many times better ours is, and whether that is enough."""
    if ours is None or other is None:
        return NOT_MEASURED
    mine, theirs = ours.typical, other.typical
    ratio = times_cheaper(theirs, mine) if more_is_better else times_cheaper(mine, theirs)
    return Result(figure=f"{quantity(ours)} beside {quantity(other)}", ratio=ratio,
                  met=ratio >= at_least)  # fmt: skip


def grown(small: Figure | None, large: Figure | None, *, at_most: float) -> Result:
    """Return how many times more the large one is."""
    if small is None or large is None:
        return NOT_MEASURED
    ratio = times_cheaper(small.typical, large.typical)
    return Result(figure=f"{quantity(small)} to {quantity(large)}", ratio=ratio,
                  met=ratio <= at_most)  # fmt: skip


def below(ours: Figure | None, limit: float, share: float = 0.5) -> Result:
    """Return a quantile of the samples, and whether it is under the limit."""
    if ours is None:
        return NOT_MEASURED
    value = quantile(ours.samples, share)
    return Result(figure=number(value, ours.unit), ratio=None, met=value < limit)


def quantity(figure: Figure) -> str:
    """Return the median with its unit."""
    return number(figure.typical, figure.unit)


def number(value: float, unit: str) -> str:
    """Return a value with its unit, with about three digits."""
    if unit == "B":
        return f"{value / MIB:,.0f} MiB"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 4  # noqa: PLR2004
    return f"{value:,.{digits}f} {unit}"
