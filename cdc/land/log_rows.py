"""Holds rows of the log: for Spark always, also in memory where they are few and just landed.

Both parts hold the same rows, so whoever can do with the ones in memory asks Spark for nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by


@dataclass(frozen=True, slots=True)
class FewRows:
    """Holds in memory all rows of some topics that have few."""

    topics: frozenset[str]
    events: pa.Table


@dataclass(frozen=True, slots=True)
class LogRows:
    """Some rows of the log; any thread may ask for either part.

    ``frame`` returns them as a DataFrame. ``events`` are the same rows, with the log's columns;
    None where they are not in memory. Then ``few`` may have those of some topics.
    """

    frame: Callable[[], DataFrame]
    events: pa.Table | None = None
    few: FewRows | None = None

    @classmethod
    def of(cls, rows: DataFrame) -> "LogRows":
        """Return rows that only Spark has."""
        return cls(lambda: rows)

    def of_topic(self, topic: str) -> "LogRows":
        """Return the rows of one topic."""
        found = self.events
        if found is None and self.few is not None and topic in self.few.topics:
            found = self.few.events
        if found is not None:
            # Not a filter by an expression: Arrow would start threads for some tens of rows.
            found = found.filter(pc.equal(found["topic"], topic))
        return LogRows(lambda: self.frame().where(F.col("topic") == topic), found)

    def between(self, after: int, upto: int) -> "LogRows":
        """Return the rows with an offset beyond ``after``, up to ``upto``."""
        found = None
        if self.events is not None:
            offset = self.events["offset"]
            inside = pc.and_(pc.greater(offset, after), pc.less_equal(offset, upto))
            found = self.events.filter(inside)
        return LogRows(lambda: self.frame().where(_between(after + 1, upto)), found)


def _between(first: int, last: int) -> Column:
    """Return the condition, made only for Spark: each part of it is a call of the JVM."""
    return F.col("offset").between(first, last)
