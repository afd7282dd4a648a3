"""Describes landings that are not wholly inside a cut yet, as values without Spark.

A landing is one append to the log. Its number is a column of the log, so that reading a slice of
the log skips most files, however large the log is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpan:
    """Describes the events of one topic in one landing."""

    last: int  # offset of the last event
    count: int
    schema_ids: frozenset[int] = frozenset()  # writer schemas of the values


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Describes one append to the log; ``topics`` maps each topic with events to their span.

    ``events`` are its rows of the log; None where they are not in memory.
    """

    number: int
    topics: Mapping[str, TopicSpan]
    events: pa.Table | None = field(default=None, compare=False, repr=False)

    @property
    def count(self) -> int:
        """Return the number of events in all topics."""
        return sum(span.count for span in self.topics.values())


def beyond(landings: Iterable[Landing], applied: Mapping[str, int]) -> list[Landing]:
    """Return the topics of each landing that are not wholly applied.

    ``applied`` is the last applied offset of every followed topic; other topics are left out, and
    so are landings with no topic left.
    """
    remaining = []
    for landing in landings:
        topics = {t: span for t, span in landing.topics.items() if _is_beyond(t, span, applied)}
        if topics:
            remaining.append(replace(landing, topics=topics))
    return remaining


def floor(landings: Sequence[Landing], applied: Mapping[str, int], lowest: int) -> int:
    """Return the number of the last landing that is wholly applied, as are all before it.

    ``applied`` is the same as for ``beyond``. Returns ``lowest`` if not even the first landing is
    wholly applied.
    """
    for landing in landings:
        if any(_is_beyond(topic, span, applied) for topic, span in landing.topics.items()):
            break
        lowest = landing.number
    return lowest


def _is_beyond(topic: str, span: TopicSpan, applied: Mapping[str, int]) -> bool:
    return topic in applied and span.last > applied[topic]


def within_budget(landings: Sequence[Landing], budget: int) -> Sequence[Landing]:
    """Return the first landings with at most ``budget`` events in total, but at least one."""
    total = 0
    for index, landing in enumerate(landings):
        total += landing.count
        if total > budget and index:
            return landings[:index]
    return landings


def last_offsets(landings: Iterable[Landing]) -> dict[str, int]:
    """Return the last landed offset of each topic."""
    offsets: dict[str, int] = {}
    for landing in landings:
        for topic, span in landing.topics.items():
            offsets[topic] = max(offsets.get(topic, -1), span.last)
    return offsets


def schema_ids(landings: Iterable[Landing]) -> dict[str, frozenset[int]]:
    """Return the ids of the values' writer schemas for each topic."""
    ids: dict[str, frozenset[int]] = {}
    for landing in landings:
        for topic, span in landing.topics.items():
            ids[topic] = ids.get(topic, frozenset()) | span.schema_ids
    return ids
