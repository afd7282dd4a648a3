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


def beyond(landings: Iterable[Landing], applied: Mapping[str, int]) -> list[Landing]:
    """What of them is not wholly applied.

    ``applied`` is the last applied offset of every topic that is followed; others are left out.
    """
    found = []
    for each in landings:
        left = {t: span for t, span in each.topics.items() if _is_beyond(t, span, applied)}
        if left:
            found.append(Landing(number=each.number, topics=left))
    return found


def floor(landings: Sequence[Landing], applied: Mapping[str, int], lowest: int) -> int:
    """The last landing that is, with all before it, wholly applied.

    ``applied`` as for ``beyond``; ``lowest`` is returned where even the first landing is not
    wholly applied.
    """
    for landing in landings:
        if any(_is_beyond(topic, span, applied) for topic, span in landing.topics.items()):
            break
        lowest = landing.number
    return lowest


def _is_beyond(topic: str, span: TopicSpan, applied: Mapping[str, int]) -> bool:
    return topic in applied and span.last > applied[topic]


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
