"""Plots of derived tables: steps by query, freshness, catching up."""

from typing import Final

from matplotlib.figure import Figure as Canvas

from bench.core.figure import Measured
from bench.derived.names import KEPT, OURS, SPARK, WHOLE
from bench.derived.published import FLINK
from bench.report.drawing import plain_numbers, spread

_WAYS: Final = (KEPT, WHOLE, SPARK)
_WIDTH: Final = 0.27


def steps(measured: Measured, canvas: Canvas) -> bool:
    """Plot the seconds of a step of each query by each way, side by side for each suite."""
    figures = measured.all_of("derived step")
    suites = list(dict.fromkeys(one.parameters["suite"] for one in figures))
    for place, suite in enumerate(suites):
        axes = canvas.add_subplot(1, len(suites), place + 1)
        here = [one for one in figures if one.parameters["suite"] == suite]
        queries = list(dict.fromkeys(str(one.parameters["query"]) for one in here))
        for number, way in enumerate(_WAYS):
            found = {one.parameters["query"]: one.typical for one in here if one.way == way}
            rows = [row for row, query in enumerate(queries) if query in found]
            axes.barh([row + (number - 1) * _WIDTH for row in rows],
                      [found[queries[row]] for row in rows], height=_WIDTH, label=way)  # fmt: skip
        axes.set_yticks(range(len(queries)), queries)
        axes.invert_yaxis()
        axes.set(title=suite, xlabel="seconds", xscale="log")
        plain_numbers(axes.xaxis)
        axes.legend(fontsize="small")
    return bool(figures)


def freshness(measured: Measured, canvas: Canvas) -> bool:
    """Plot the freshness of captured tables without derived ones, with ten, and with ten behind."""
    figures = measured.all_of("derived freshness")
    if not figures:
        return False
    axes = canvas.add_subplot()
    spread(axes, [(one.way, one) for one in figures])
    axes.set(ylabel="share of commits")
    return True


def catching_up(measured: Measured, canvas: Canvas) -> bool:
    """Plot events per second of a core, of ours, of a Spark job, and as Flink's are published."""
    figures = measured.all_of("catch-up per core")
    if not figures:
        return False
    axes = canvas.add_subplot()
    queries = list(dict.fromkeys(str(one.parameters["query"]) for one in figures))
    ways = {way: {str(one.parameters["query"]): one.typical for one in figures if one.way == way}
            for way in (OURS, SPARK)}  # fmt: skip
    ways["Flink, as published"] = {query: float(FLINK[query]) for query in queries}
    for number, (way, found) in enumerate(ways.items()):
        places = [row + (number - 1) * _WIDTH for row in range(len(queries))]
        axes.bar(places, [found.get(query, 0) for query in queries], width=_WIDTH, label=way)
    axes.set_xticks(range(len(queries)), queries)
    axes.set(ylabel="events per second and core", yscale="log")
    plain_numbers(axes.yaxis)
    axes.legend(fontsize="small")
    return True
