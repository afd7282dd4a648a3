"""Keeps the times of a round's stages, as histograms that only grow."""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Any, Final

BOUNDS: Final = tuple(
    step * size for size in (0.001, 0.01, 0.1, 1.0, 10.0) for step in (1.0, 2.0, 5.0)
)
"""Upper bounds in seconds of a histogram's buckets; one more bucket has what is above the last."""


class Stage(StrEnum):
    """Names a part of the path from Kafka to a published cut.

    Decoding, reducing and committing are those of batches that this process applies.
    """

    LAND = "land"
    LOOK = "look"
    DECODE = "decode"
    REDUCE = "reduce"
    COMMIT = "commit"
    PUBLISH = "publish"


@dataclass(slots=True)
class Histogram:
    """Counts how often something took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0  # all together

    @property
    def count(self) -> int:
        """Return how many times were added."""
        return sum(self.counts)

    def add(self, seconds: float) -> None:
        """Count one more time."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def as_json(self) -> dict[str, Any]:
        """Return it with the count of each bucket, by its upper bound."""
        names = [*(f"{bound:g}" for bound in BOUNDS), "inf"]
        buckets = dict(zip(names, self.counts, strict=True))
        return {"count": self.count, "seconds": self.seconds, "buckets": buckets}


class StageTimes:
    """Keeps the histograms of one job by stage; any thread may add to them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_stage = {stage: Histogram() for stage in Stage}

    @contextmanager
    def timed(self, stage: Stage) -> Iterator[None]:
        """Add the time that the block takes, also if it fails."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._by_stage[stage].add(time.perf_counter() - began)

    def as_json(self) -> Mapping[str, Any]:
        """Return the histograms by the names of their stages."""
        with self._lock:
            return {stage.value: times.as_json() for stage, times in self._by_stage.items()}
