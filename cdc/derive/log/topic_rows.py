"""Gives a topic's rows of the log: from memory where a round has them, else from the lake."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from cdc.land.stretches import MOST, stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Holds rows of the log in memory: of each topic in ``after``, all beyond that offset.

    They reach at least to the cut that a round publishes.
    """

    events: pa.Table
    after: Mapping[str, int]

    def has(self, topic: str, after: int) -> bool:
        """Return whether all rows of the topic beyond an offset are here."""
        return topic in self.after and after >= self.after[topic]

    def rows(self, topic: str, after: int, upto: int) -> pa.Table:
        """Return the topic's rows beyond one offset, up to another, by offset."""
        mine = self.events.filter(pc.equal(self.events["topic"], topic))
        inside = pc.and_(pc.greater(mine["offset"], after), pc.less_equal(mine["offset"], upto))
        return mine.filter(inside).sort_by("offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """Reads the log at ``path``; ``recent`` are its rows that are in memory, if any."""

    path: str
    recent: Recent | None = field(default=None, repr=False)
    most: int = MOST  # rows that are given at once

    def rows(self, topic: str, after: int, upto: int) -> Iterator[pa.Table]:
        """Yield the topic's rows beyond one offset, up to another, by offset, some at a time."""
        if after >= upto:
            return
        if self.recent is None or not self.recent.has(topic, after):
            yield from stretches(self.path, topic, after, upto, most=self.most)
            return
        found = self.recent.rows(topic, after, upto)
        for first in range(0, len(found), self.most):
            yield found.slice(first, self.most)
