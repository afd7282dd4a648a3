"""Keeps the summary of each landing until the landing is inside a published cut."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.local.not_local import NotLocalError
from cdc.apply.rounds import spark_summary
from cdc.apply.rounds.local_summary import LocalSummaries
from cdc.apply.rounds.log_slice import rows_beyond
from cdc.apply.rounds.summary import Summary
from cdc.kafka.registry_client import SchemaLookup
from cdc.land.landing import Landing, schema_ids


class Summaries:
    """Summarises each landing once; used by the thread of the rounds alone.

    A landing is decoded again only if a cut ends inside one of its transactions, or if the
    registry has learnt a schema since.
    """

    def __init__(self, schemas_of: SchemaLookup, *, markers: str, prefix: str) -> None:
        """``markers`` is the topic of transaction markers, ``prefix`` that of all topics."""
        self._schemas_of = schemas_of
        self._markers = markers
        self._prefix = prefix
        self._local = LocalSummaries(markers, prefix)
        self._known: dict[int, Summary] = {}
        self.decoded = 0
        """How many events were decoded for summaries since the start."""

    def of(
        self,
        landings: Sequence[Landing],
        after: Mapping[str, int],
        frame: Callable[[], DataFrame],
    ) -> list[Summary]:
        """Return the summaries of landings beyond the offsets ``after``, in their order.

        ``after`` has the offset of every followed topic; others do not count. ``frame`` returns
        the rows of these landings beyond the offsets; it is asked only where some are needed that
        are not in memory.
        """
        waiting = [landing for landing in landings if not self._is_known(landing, after)]
        left = [landing for landing in waiting if not self._is_summarised(landing, after)]
        if left:
            self._known |= self._by_spark(left, frame())
        return [self._known[landing.number] for landing in landings]

    def forget(self, upto: int) -> None:
        """Forget the landings up to number ``upto``, which are wholly inside a published cut."""
        self._known = {number: found for number, found in self._known.items() if number > upto}

    def _is_known(self, landing: Landing, after: Mapping[str, int]) -> bool:
        """Return whether the summary is there, and cut it to what lies beyond the offsets."""
        known = self._known.get(landing.number)
        if known is None or (known.unknown and self._schemas_of(known.unknown)):
            return False
        left = known.beyond(after, self._markers)
        if left is None:
            return False
        self._known[landing.number] = left
        return True

    def _is_summarised(self, landing: Landing, after: Mapping[str, int]) -> bool:
        """Summarise a landing without Spark; return whether that was possible."""
        if landing.events is None:
            return False
        rows = rows_beyond(landing.events, after)
        schemas, unknown = self._schemas([landing])
        try:
            found = self._local.summary(rows, schemas)
        except NotLocalError:
            return False
        self.decoded += len(rows)
        self._known[landing.number] = replace(found, unknown=unknown)
        return True

    def _by_spark(self, landings: Sequence[Landing], rows: DataFrame) -> dict[int, Summary]:
        """Summarise these landings together."""
        self.decoded += sum(landing.count for landing in landings)
        schemas, unknown = self._schemas(landings)
        numbers = [landing.number for landing in landings]
        found = spark_summary.summaries(
            rows.where(F.col("landing").isin(numbers)),
            schemas,
            marker_topic=self._markers,
            prefix=self._prefix,
        )
        return {
            number: replace(found.get(number, Summary()), unknown=unknown) for number in numbers
        }

    def _schemas(self, landings: Sequence[Landing]) -> tuple[Mapping[int, str], frozenset[int]]:
        """Return the writer schemas of the landings, and the ids that are not known."""
        ids = frozenset[int]().union(*schema_ids(landings).values())
        schemas = self._schemas_of(ids)
        return schemas, ids - schemas.keys()
