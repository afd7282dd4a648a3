"""Reads the time of each stage of a round from the job's own histograms."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bench.core.figure import Figure, NotMeasured, Outcome
from cdc.state.directory import read_json
from cdc.state.pace import FILE

_SHARES: Final = [place / 100 for place in range(101)]
"""Of so many equally distant quantiles, those at these places are the same."""


def stage_figures(state: Path, tables: int) -> Iterator[Outcome]:
    """Yield the quantiles of each stage that the job has recorded in its state directory."""
    found = read_json(state / FILE)
    if found is None:
        yield NotMeasured(name="stages", why=f"this job writes no {FILE}")
        return
    for name, histogram in found["stages"].items():
        if histogram["count"]:
            yield Figure(
                name="stage",
                way=name,
                unit="s",
                samples=tuple(quantile_of(histogram["buckets"], share) for share in _SHARES),
                parameters={"tables": tables},
                note=f"{histogram['count']} times, {histogram['seconds']:.2f} s in all,"
                " from a histogram",
            )
        else:
            yield NotMeasured(name=f"stage {name}", why="the job has not counted it")


def quantile_of(buckets: Mapping[str, int], share: float) -> float:
    """Return the value below which a share lies; between the bounds of a bucket linearly.

    ``buckets`` are counts by upper bound in order. What is above the last bound counts as it.
    """
    wanted, before, low = share * sum(buckets.values()), 0, 0.0
    for text, count in buckets.items():
        high = low if math.isinf(float(text)) else float(text)
        if before + count >= wanted and count:
            return low + (high - low) * (wanted - before) / count
        before, low = before + count, high
    return low
