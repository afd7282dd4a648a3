"""Finds out which records a micro-batch has, before any of them is read.

Structured Streaming writes where a micro-batch ends into its checkpoint before it hands it over.
Offsets between two ends that no event has (markers of Kafka's transactions) count as well.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Holds the offsets of one micro-batch."""

    ranges: Mapping[str, range]  # by topic
    exact: bool
    """False if the query began a topic at the first offset that Kafka had: 0 stands for it."""

    @property
    def most_records(self) -> int:
        """Return how many records the micro-batch has at most."""
        return sum(map(len, self.ranges.values()))


class MicroBatches:
    """Reads the micro-batches of one query, for which one thread asks in their order."""

    def __init__(self, checkpoint: Path, begin: Mapping[str, int]) -> None:
        """``begin`` has the first offset that the query reads, by topic, where it is known."""
        self._offsets = checkpoint / "offsets"
        self._read = dict(begin)

    def batch(self, number: int) -> MicroBatch | None:
        """Return a micro-batch; None if it cannot be found out."""
        try:
            *_, text = (self._offsets / str(number)).read_text(encoding="utf-8").splitlines()
            ends = {topic: int(end["0"]) for topic, end in json.loads(text).items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        ranges = {topic: range(self._read.get(topic, 0), end) for topic, end in ends.items()}
        exact = all(topic in self._read for topic, offsets in ranges.items() if offsets)
        self._read.update(ends)
        return MicroBatch(ranges=ranges, exact=exact)
