"""How large a micro-batch is at most, before any of it is read.

Structured Streaming writes where a micro-batch ends into its checkpoint before it hands it over.
Records between two ends that are no events (markers of Kafka's transactions) count as well.
"""

import json
from collections.abc import Mapping
from pathlib import Path


class BatchSizes:
    """The sizes of one query's micro-batches, asked in their order by one thread."""

    def __init__(self, checkpoint: Path, begin: Mapping[str, int]) -> None:
        """``begin`` has the first offset that the query reads, by topic, where it is known."""
        self._offsets = checkpoint / "offsets"
        self._read = dict(begin)

    def most_records(self, batch: int) -> int | None:
        """Return how many records a micro-batch has at most; None if that cannot be found out."""
        try:
            *_, text = (self._offsets / str(batch)).read_text(encoding="utf-8").splitlines()
            ends = {topic: int(end["0"]) for topic, end in json.loads(text).items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        most = sum(max(0, end - self._read.get(topic, 0)) for topic, end in ends.items())
        self._read.update(ends)
        return most
