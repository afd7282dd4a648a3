"""Finds the next cut: the longest prefix of landed transactions that are complete."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from cdc.apply.rounds import log_slice
from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.cut_requests import served_by
from cdc.apply.rounds.first_snapshot import FirstSnapshot
from cdc.apply.rounds.last_cut import LastCut, Topics
from cdc.apply.rounds.log_slice import SharedFrame, Slice
from cdc.apply.rounds.summaries import Summaries
from cdc.apply.rounds.whole_transactions import Cut, find_cut
from cdc.apply.table.spark_plans import suit
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.layout import lake_of
from cdc.land import landing as landed_values
from cdc.land.inbox import Inbox
from cdc.land.landing import Landing
from cdc.land.log_rows import LogRows
from cdc.observe.stage_times import Stage, StageTimes
from cdc.state.requests import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCut:
    """Holds a cut, and says whether it is worth publishing, and why."""

    cut: Cut
    moves: bool  # whether it has an event that the last cut does not have
    served: Request | None  # the request that asked for it

    @property
    def is_due(self) -> bool:
        """Return whether to publish the cut."""
        return self.moves or self.served is not None


class CutFinder:
    """Finds one cut after the other; used by the thread of the rounds alone."""

    def __init__(
        self,
        spark: SparkSession,
        log_path: str,
        *,
        topics: Topics,
        tables: AppliedTables,
        inbox: Inbox,
        first: FirstSnapshot,
        schemas_of: SchemaLookup,
        stages: StageTimes,
        few: int,
    ) -> None:
        """``few`` are the events of a table that this process applies; 0 if Spark applies all."""
        self._spark = spark.newSession()  # its own, since its plans are set for each slice
        self._log_path = log_path
        self._topics = topics
        self._tables = tables
        self._inbox = inbox
        self._first = first
        self._schemas_of = schemas_of
        self._stages = stages
        self._few = few
        self._summaries = Summaries(schemas_of, markers=topics.markers, prefix=topics.prefix)

    @property
    def events_decoded(self) -> int:
        """Return how many events were decoded to find cuts since the start."""
        return self._summaries.decoded

    @property
    def held_topic_count(self) -> int:
        """Return how many topics wait for the end of the first snapshot."""
        return len(self._first.held_topics)

    def landed(self, last: LastCut) -> list[Landing]:
        """Return the landings beyond the last cut, in order."""
        snapshot_landed_by = self._first.landed_by(lambda: self._inbox.waiting()[-1].number)
        landed = self._inbox.waiting()  # listed afterwards, so that it has all up to that landing
        self._first.look(snapshot_landed_by, self._beyond(landed, last))
        return self._beyond(landed, last)

    def _beyond(self, landed: Sequence[Landing], last: LastCut) -> list[Landing]:
        return landed_values.beyond(landed, self._first.open(last.offsets))

    def schemas(self, taken: Sequence[Landing]) -> Mapping[int, str]:
        """Return the writer schemas of these landings, by id."""
        return self._schemas_of(set().union(*landed_values.schema_ids(taken).values()))

    @contextmanager
    def slice(self, taken: Sequence[Landing], last: LastCut) -> Iterator[Slice]:
        """Yield the events of these landings beyond the last cut.

        Spark reads them only if somebody asks for the frame, and caches them while the block lasts.
        """
        numbers = {landing.number for landing in taken}
        whole = [landing for landing in self._inbox.waiting() if landing.number in numbers]
        self._summaries.forget(last.row.landing_floor)
        lake = lake_of(self._log_path)
        with closing(SharedFrame(lambda: self._frame(whole, last.offsets), lake)) as shared:
            with self._stages.timed(Stage.LOOK):
                part = log_slice.merged(
                    self._summaries.of(whole, last.offsets, shared.get),
                    cache(lambda: self._rows(shared.get, whole, last.offsets)),
                    topics={topic for landing in taken for topic in landing.topics},
                    last=self._ends(taken, last),
                    marker_topic=self._topics.markers,
                )
            yield self._first.held_back(part, self._tables.has)

    def _rows(
        self, frame: Callable[[], DataFrame], landings: Sequence[Landing], after: Mapping[str, int]
    ) -> LogRows:
        events = log_slice.in_memory(landings, after)
        if events is not None or not self._few:
            return LogRows(frame, events)
        few = log_slice.few_rows(self._log_path, landings, after, self._few)
        return LogRows(frame, few=few)

    def _frame(self, landings: Sequence[Landing], after: Mapping[str, int]) -> DataFrame:
        suit(self._spark, sum(landing.count for landing in landings))
        return log_slice.read(self._spark, self._log_path, landings, after)

    def _ends(self, taken: Sequence[Landing], last: LastCut) -> dict[str, int]:
        """Return the last landed offset of every topic, also of topics that ``taken`` lacks."""
        landed = landed_values.last_offsets(taken)
        awaited = (*self._tables.by_topic, self._topics.notes)
        return {topic: max(last.offsets[topic], landed.get(topic, -1)) for topic in awaited}

    def find(self, part: Slice, waiting: Sequence[Request], last: LastCut) -> NextCut | None:
        """Return the next cut, or None where a table is beyond every cut in the slice.

        That happens when a crash prevented the publication of a larger cut.
        """
        cut, bound = self._bounded(part, waiting, last)
        if not self._first.applied and self._tables.is_beyond(cut, last):
            return None
        return NextCut(
            cut=cut,
            moves=_moves(cut, last),
            served=served_by(waiting, part, cut, bound, reached=last.lsn),
        )

    def _bounded(
        self, part: Slice, waiting: Sequence[Request], last: LastCut
    ) -> tuple[Cut, int | None]:
        """Return the cut and the bound at which it stops.

        A table beyond the bounded cut was brought there by a round that crashed before it
        published: that cut has to come first, so this one ignores the bound.
        """
        bound = min((request.bound for request in waiting if request.bound), default=None)
        cut = _cut(part, bound)
        return (_cut(part, None), None) if self._tables.is_beyond(cut, last) else (cut, bound)


def _cut(part: Slice, bound: int | None) -> Cut:
    """Return the cut, without waiting for topics that have events of unknown transactions.

    These undecodable events go to quarantine, and their table is marked degraded.
    """
    return find_cut(part.ends, part.spans, part.last, bound=bound, ignored=part.undecodable)


def _moves(cut: Cut, last: LastCut) -> bool:
    return cut.lsn is not None or any(
        offset > last.offsets.get(topic, -1) for topic, offset in cut.offsets.items()
    )
