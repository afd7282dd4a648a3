"""What has landed and is not yet wholly inside a cut: plain values, no Spark.

A landing is one append to the log. Its number is a column of the log, so that a slice of the
log is read by skipping files, however large the log is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpan:
    """What one landing holds of one topic."""

    last: int  # offset of the last event
    count: int
    schema_ids: frozenset[int] = frozenset()  # writer schemas of the values


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    number: int
    topics: Mapping[str, TopicSpan]

    @property
    def count(self) -> int:
        return sum(span.count for span in self.topics.values())


def floor(landings: Sequence[Landing], applied: Mapping[str, int], lowest: int) -> int:
    """The last landing that is, with all before it, wholly applied.

    ``applied`` is the last applied offset by topic; ``lowest`` is returned where even the first
    landing is not wholly applied.
    """
    for landing in landings:
        if any(span.last > applied.get(topic, -1) for topic, span in landing.topics.items()):
            break
        lowest = landing.number
    return lowest


def take(landings: Sequence[Landing], budget: int) -> Sequence[Landing]:
    """The first landings of together at most ``budget`` events, and always at least one."""
    total = 0
    for index, landing in enumerate(landings):
        total += landing.count
        if total > budget and index:
            return landings[:index]
    return landings


def last_offsets(landings: Iterable[Landing]) -> dict[str, int]:
    """The last offset landed, by topic."""
    found: dict[str, int] = {}
    for landing in landings:
        for topic, span in landing.topics.items():
            found[topic] = max(found.get(topic, -1), span.last)
    return found


def schema_ids(landings: Iterable[Landing]) -> dict[str, frozenset[int]]:
    """The writer schemas of the values, by topic."""
    found: dict[str, frozenset[int]] = {}
    for landing in landings:
        for topic, span in landing.topics.items():
            found[topic] = found.get(topic, frozenset()) | span.schema_ids
    return found
