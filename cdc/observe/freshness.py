"""Measure freshness, the time from a commit in the source to the cut that makes it readable.

The functions are pure: they work on transaction markers and the ledger after the fact.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Holds the seconds from commit to cut, over the transactions that some cut includes."""

    transactions: int
    waiting: int  # transactions that no cut includes yet
    p50: float  # NaN without transactions
    p99: float
    max: float


def freshness(
    commits: Iterable[tuple[int, datetime]], cuts: Iterable[tuple[int | None, datetime]]
) -> Freshness:
    """Measure the freshness of transactions and cuts.

    ``commits`` are (LSN of the END marker, commit time); ``cuts`` are (LSN, time of publishing).
    A transaction becomes readable with the first cut whose LSN is not below its own. Commit times
    come from the source's clock and cuts from the job's, so the result includes their difference.
    """
    published = sorted((lsn, at) for lsn, at in cuts if lsn is not None)
    positions = [lsn for lsn, _ in published]
    seconds, waiting = list[float](), 0
    for lsn, committed_at in commits:
        index = bisect_left(positions, lsn)
        if index == len(positions):
            waiting += 1
        else:
            seconds.append((published[index][1] - committed_at).total_seconds())
    seconds.sort()
    return Freshness(
        transactions=len(seconds),
        waiting=waiting,
        p50=percentile(seconds, 0.5),
        p99=percentile(seconds, 0.99),
        max=seconds[-1] if seconds else math.nan,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the ordered values do not exceed.

    Returns NaN if there are no values.
    """
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
