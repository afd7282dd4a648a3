"""What the tutorial job says of its batches, and what was readable when."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from cdc.demo.freshness import Freshness


class Events(Protocol):
    """See ``bench.tail.Tail``."""

    def first_after(self, topic: str, offset: int) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    rows: int
    readable_at: float  # when its last merge was done
    ends: dict[str, int]  # topic -> first offset that is not in it


def batches(progress: Path) -> Iterator[Batch]:
    """In order; a line that is not whole yet is left for the next look."""
    if not progress.exists():
        return
    for line in progress.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield _parse(line)


def _parse(line: str) -> Batch:
    raw = json.loads(line)
    durations = raw["durationMs"]
    # A trigger ends with the commit of its offsets, which no reader of the tables waits for.
    taken = durations["triggerExecution"] - durations.get("commitOffsets", 0)
    (source,) = raw["sources"]
    ends = source["endOffset"]
    ends = json.loads(ends) if isinstance(ends, str) else ends
    return Batch(
        rows=int(raw["numInputRows"]),
        readable_at=datetime.fromisoformat(raw["timestamp"]).timestamp() + taken / 1000,
        ends={topic: int(partitions["0"]) for topic, partitions in ends.items()},
    )


def cover(freshness: Freshness, found: list[Batch], events: Events) -> None:
    """Match the noted commits with batches, by the source's commit times.

    A batch holds all commits before the earliest event that it does not hold, of any topic.
    """
    for batch in found:
        missing = [events.first_after(topic, end) for topic, end in batch.ends.items()]
        times = [at for at in missing if at is not None]
        through = min(times) - 1 if times else int(batch.readable_at * 1000)
        freshness.published(lsn=through, at=datetime.fromtimestamp(batch.readable_at).astimezone())
