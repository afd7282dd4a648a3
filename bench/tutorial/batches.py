"""Reads the tutorial job's report of its batches, to find when commits became readable."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from cdc.demo.freshness_meter import FreshnessMeter


class Events(Protocol):
    """Tells when the events of the topics were committed: see ``bench.tutorial.tail.Tail``."""

    def first_after(self, topic: str, offset: int) -> int | None:
        """Return the commit time in milliseconds of the first event from the offset on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A finished batch of the tutorial job; times are in seconds since 1970."""

    rows: int
    readable_at: float  # when its last merge was done
    ends: dict[str, int]  # topic -> first offset that is not in it


def batches(progress: Path) -> Iterator[Batch]:
    """Yield the batches in order; an incomplete last line is left for the next call."""
    if not progress.exists():
        return
    for line in progress.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield _parse(line)


def _parse(line: str) -> Batch:
    raw = json.loads(line)
    durations = raw["durationMs"]
    # A trigger ends with the commit of its offsets, for which no reader of the tables waits.
    taken = durations["triggerExecution"] - durations.get("commitOffsets", 0)
    (source,) = raw["sources"]
    ends = source["endOffset"]
    ends = json.loads(ends) if isinstance(ends, str) else ends
    return Batch(
        rows=int(raw["numInputRows"]),
        readable_at=datetime.fromisoformat(raw["timestamp"]).timestamp() + taken / 1000,
        ends={topic: int(partitions["0"]) for topic, partitions in ends.items()},
    )


def cover(freshness: FreshnessMeter, finished: list[Batch], events: Events) -> None:
    """Match the noted commits with batches, by the source's commit times.

    A batch contains all commits before the earliest event, of any topic, that it does not contain.
    """
    for batch in finished:
        missing = [events.first_after(topic, end) for topic, end in batch.ends.items()]
        times = [at for at in missing if at is not None]
        through = min(times) - 1 if times else int(batch.readable_at * 1000)
        freshness.add_cut(lsn=through, at=datetime.fromtimestamp(batch.readable_at).astimezone())
