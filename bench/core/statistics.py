"""Medians, percentiles and ratios of raw samples. Pure."""

import math
from collections.abc import Sequence


def median(samples: Sequence[float]) -> float:
    """Return the median; raises ValueError for no samples."""
    return quantile(samples, 0.5)


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the value below which a share of the samples lies, between two of them linearly.

    Raises ValueError for no samples, and for a share outside 0 to 1.
    """
    if not samples or not 0 <= share <= 1:
        raise ValueError(f"no quantile {share} of {len(samples)} samples")
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def times_cheaper(ours: float, other: float) -> float:
    """Return how many times less ours costs than the other; infinite for nothing."""
    return other / ours if ours else math.inf


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the straight line nearest to the points, 0 for fewer than two places."""
    if len({x for x, _ in points}) < 2:  # noqa: PLR2004 - a line needs two points
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    over = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return over / sum((x - middle_x) ** 2 for x, _ in points)


def steady_peak(samples: Sequence[float], width: int = 5) -> float:
    """Return the largest median of so many samples in a row.

    A process that has just forked counts twice for a moment; that is not memory it holds.
    """
    if len(samples) <= width:
        return median(samples)
    return max(median(samples[begin : begin + width]) for begin in range(len(samples) - width + 1))
