"""What the benchmark of derived tables is to reach, computed from its figures. Pure."""

from collections.abc import Callable
from typing import Final

from bench.core.figure import Figure, Measured
from bench.core.reach import NOT_MEASURED, Result, Row, grown, quantity
from bench.core.statistics import median, times_cheaper
from bench.derived.names import (
    ALL,
    BY_SCOPE,
    DERIVED,
    KEPT,
    LAGGING,
    NONE,
    OURS,
    SPARK,
    WHOLE,
)
from bench.derived.published import FLINK

_BY: Final = (DERIVED,)
_CHECK_SECONDS: Final = 0.2
_REACH: Final = {
    SPARK: (6.0, "the median of them at least 6 times cheaper"),
    WHOLE: (1.0, "the median of them no dearer"),
}


def _times(measured: Measured, suite: str, way: str) -> list[float]:
    """Return how many times cheaper a step is, of each query that is kept by its scope key."""
    found = []
    for ours in measured.all_of("derived step", KEPT, suite=suite, kept=BY_SCOPE):
        other = measured.one("derived step", way, suite=suite, query=ours.parameters["query"])
        if other is not None:
            found.append(times_cheaper(ours.typical, other.typical))
    return found


def _steps(suite: str, way: str, at_least: float) -> Callable[[Measured], Result]:
    def compute(measured: Measured) -> Result:
        times = _times(measured, suite, way)
        if not times:
            return NOT_MEASURED
        figure = f"{len(times)} queries, {min(times):,.1f} to {max(times):,.1f} times cheaper"
        ratio = median(times)
        return Result(figure=figure, ratio=ratio, met=ratio >= at_least)

    return compute


def _added(measured: Measured) -> Result:
    without, ten = (measured.one("derived round", way) for way in (NONE, ALL))
    if without is None or ten is None:
        return NOT_MEASURED
    added = ten.typical - without.typical
    figure = f"{added:.2f} s: {quantity(without)} to {quantity(ten)}"
    return Result(figure=figure, ratio=None, met=added <= 1)


def _equal(measured: Measured) -> Result:
    found = measured.all_of("derived differing")
    if not found:
        return NOT_MEASURED
    rows, compared = sum(sum(one.samples) for one in found), sum(len(one.samples) for one in found)
    figure = f"{rows:,.0f} rows in {compared} comparisons"
    return Result(figure=figure, ratio=None, met=rows == 0)


def _checked(measured: Measured) -> Result:
    found = measured.one("derived check", OURS)
    if found is None:
        return NOT_MEASURED
    return Result(figure=quantity(found), ratio=None, met=found.typical < _CHECK_SECONDS)


def _beside_flink(query: str) -> Callable[[Measured], Result]:
    def compute(measured: Measured) -> Result:
        ours: Figure | None = measured.one("catch-up per core", OURS, query=query)
        if ours is None:
            return NOT_MEASURED
        ratio = ours.typical / FLINK[query]
        figure = f"{quantity(ours)} beside {FLINK[query]:,} events/s"
        return Result(figure=figure, ratio=ratio, met=ratio >= 5)  # noqa: PLR2004 - named in reach

    return compute


DERIVED_ROWS: Final = (
    *(
        Row(
            what=f"a step of {suite}'s queries by the scope key, beside a {way}",
            reach=reach,
            benchmarks=_BY,
            compute=_steps(suite, way, least),
        )
        for suite in ("Nexmark", "TPC-H")
        for way, (least, reach) in _REACH.items()
    ),
    Row(
        what="rows that differ from those of a Spark job, or of a full recompute",
        reach="none",
        benchmarks=_BY,
        compute=_equal,
    ),
    Row(
        what="derived check of 50 files with queries of Nexmark, once Python has started",
        reach="under 0.2 s",
        benchmarks=_BY,
        compute=_checked,
    ),
    Row(
        what="ten derived tables add to a round of 2,500 events, p50",
        reach="at most 1 s",
        benchmarks=_BY,
        compute=_added,
    ),
    Row(
        what="freshness of captured tables, p50, while derived ones are forced to lag",
        reach="unchanged: grows by at most 1.25",
        benchmarks=_BY,
        compute=lambda m: grown(
            m.one("derived freshness", NONE), m.one("derived freshness", LAGGING), at_most=1.25
        ),
    ),
    *(
        Row(
            what=f"a million events of Nexmark's {query} in one step, beside Flink's published",
            reach="at least 5 times as many per core",
            benchmarks=_BY,
            compute=_beside_flink(query),
        )
        for query in FLINK
    ),
)
