"""Reads a slice of the log: the events that a round looks at, and the transactions in them."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.rounds.summary import Summary, snapshots, spans
from cdc.apply.rounds.whole_transactions import Span
from cdc.events.transactions import Marker
from cdc.lake.table.store import read_pinned
from cdc.lake.upkeep.held import held
from cdc.land.landing import Landing
from cdc.land.log_rows import FewRows, LogRows
from cdc.land.read_back import rows_of_topics
from cdc.land.small_batches import MOST_RECORDS

_EVERYTHING = 2**63 - 1  # no offset is beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Holds the events after the last cut: as many as the round takes.

    ``read`` returns their rows; most searches for a cut end before anyone asks.
    """

    read: Callable[[], LogRows]
    ends: Sequence[Marker]  # END markers, in order
    end_offsets: Mapping[int, int]  # offset of the END marker, by its lsn
    spans: Mapping[str, Mapping[int, Span]]  # by topic and transaction
    last: Mapping[str, int]  # offset of the last event, by topic
    undecodable: frozenset[str]  # topics with an event whose transaction is unknown
    snapshots: Mapping[str, frozenset[int]]  # by topic: lsns (or NO_LSN) of its snapshot events

    @property
    def rows(self) -> LogRows:
        """Return the rows of the log."""
        return self.read()


class SharedFrame:
    """Shares rows among threads: the first that asks reads them, and they are cached until closed.

    The lake is held for that long, since what is not in the cache any more is read again.
    """

    def __init__(self, make: Callable[[], DataFrame], lake: str) -> None:
        self._make = make
        self._lake = lake
        self._held = ExitStack()
        self._lock = threading.Lock()
        self._frame: DataFrame | None = None

    def get(self) -> DataFrame:
        """Return the rows."""
        with self._lock:
            if self._frame is None:
                self._held.enter_context(held(self._lake, by_job=True))
                self._frame = self._make().persist()
            return self._frame

    def close(self) -> None:
        """Give up the cached rows, if any."""
        with self._lock:
            if self._frame is not None:
                self._frame.unpersist()
            self._held.close()


def read(
    spark: SparkSession, path: str, landings: Sequence[Landing], after: Mapping[str, int]
) -> DataFrame:
    """Return the log's rows of these landings beyond the offsets, of the topics in ``after``.

    Spark skips the files of other landings.
    """
    numbers = [landing.number for landing in landings]
    topics = {topic for landing in landings for topic in landing.topics}
    beyond = [
        (F.col("topic") == topic) & (F.col("offset") > after[topic])
        for topic in sorted(topics & after.keys())
    ]
    rows = read_pinned(spark, path)
    return rows.where(F.col("landing").between(numbers[0], numbers[-1]) & _any(beyond))


def in_memory(landings: Sequence[Landing], after: Mapping[str, int]) -> pa.Table | None:
    """Return the same rows as ``read``; None unless all of them are in memory."""
    events = [landing.events for landing in landings if landing.events is not None]
    if not events or len(events) < len(landings):
        return None
    return pa.concat_tables([rows_beyond(rows, after) for rows in events])


def few_rows(
    path: str, landings: Sequence[Landing], after: Mapping[str, int], most: int
) -> FewRows | None:
    """Return the same rows of the topics with at most ``most`` events; None if there are none.

    One table with many events is no reason to leave all others to Spark. The rows are read from
    the log at ``path``, without Spark; None too if they are large.
    """
    topics = few_topics(landings, most) & after.keys()
    if not topics:
        return None
    first, last = landings[0].number, landings[-1].number
    found = rows_of_topics(path, first, last, topics)
    return None if found is None else FewRows(topics, rows_beyond(found, after))


def few_topics(landings: Iterable[Landing], most: int) -> frozenset[str]:
    """Return the topics with at most ``most`` events in the landings: as many as fit in memory."""
    counts = Counter[str]()
    for landing in landings:
        counts.update({topic: span.count for topic, span in landing.topics.items()})
    few = sorted((n, topic) for topic, n in counts.items() if n <= most)
    totals = accumulate(n for n, _ in few)
    return frozenset(
        topic for (_, topic), total in zip(few, totals, strict=True) if total <= MOST_RECORDS
    )


def rows_beyond(events: pa.Table, after: Mapping[str, int]) -> pa.Table:
    """Return the rows beyond the offsets, of the topics in ``after``."""
    topics = events["topic"].combine_chunks().dictionary_encode()
    if isinstance(topics, pa.ChunkedArray):
        topics = topics.combine_chunks()
    ends = [after.get(topic, _EVERYTHING) for topic in topics.dictionary.to_pylist()]
    limits = pa.array(ends, pa.int64()).take(topics.indices)
    return events.filter(pc.greater(events["offset"], limits))


def merged(
    summaries: Iterable[Summary],
    rows: Callable[[], LogRows],
    *,
    topics: Collection[str],
    last: Mapping[str, int],
    marker_topic: str,
) -> Slice:
    """Return the slice of landings with these summaries.

    Only events of ``topics`` count. ``rows`` returns the rows of the log. ``last`` has the last
    landed offset of every topic whose events are awaited, also where nothing landed.
    """
    found = list(summaries)
    groups = [group for one in found for group in one.groups if group.topic in topics]
    ends = sorted((end for one in found for end in one.ends), key=lambda end: end[0])
    if marker_topic not in topics:
        ends = []
    return Slice(
        read=rows,
        ends=[end for _, end in ends],
        end_offsets={end.lsn: offset for offset, end in ends},
        spans=spans(groups),
        last=last,
        undecodable=frozenset(group.topic for group in groups if group.undecodable),
        snapshots=snapshots(groups),
    )


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))  # noqa: FBT003 - a literal column
