"""Applies events of one table from the log again, by the stream's own code, in bounded batches."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import is_moved
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.rounds import spark_summary
from cdc.apply.rounds.local_summary import local_snapshots
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.structure_notes import BoundNote, PlacedNote
from cdc.events.envelope import NEW_KEY
from cdc.kafka.registry_client import SchemaLookup
from cdc.land import landing as landed_values
from cdc.land.arrow_rows import LOG_SCHEMA
from cdc.land.landing import Landing
from cdc.land.log_rows import LogRows
from cdc.land.log_table import landings, summary
from cdc.land.small_batches import SmallBatches

logger = structlog.get_logger(__name__)


def do_nothing() -> None:
    """Do nothing: the default of ``step``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Holds rows of one topic in the log, and what it takes to apply them to the topic's table."""

    rows: DataFrame  # up to the wanted offset; rows that the table has already are passed over
    topic: str
    notes: Sequence[PlacedNote]  # all structure changes up to the same place
    schemas_of: SchemaLookup
    budget: int  # how many events a batch has at most, unless a landing has more
    snapshot_end: int | None = 0  # LSN of the first snapshot's end, as in the ledger
    small: SmallBatches = field(default_factory=lambda: SmallBatches(0))  # come to this process

    def after(self, offset: int) -> "Recorded":
        """Return the rows beyond an offset."""
        return replace(self, rows=self.rows.where(F.col("offset") > offset))

    def stretch(self, landings: Sequence[Landing]) -> Stretch:
        """Return the events of these landings, which have some; without the notes."""
        inside = F.col("landing").between(landings[0].number, landings[-1].number)
        events = sum(landing.topics[self.topic].count for landing in landings)
        return Stretch(
            rows=self._brought(self.rows.where(inside), events),
            topic=self.topic,
            upto=landed_values.last_offsets(landings)[self.topic],
            schemas=self.schemas_of(landed_values.schema_ids(landings)[self.topic]),
            snapshot_end=self.snapshot_end,
        )

    def _brought(self, rows: DataFrame, events: int) -> LogRows:
        """Return so many rows of the topic, in memory if they are few."""
        found = self.small.rows(rows, events)
        if found is None:
            return LogRows.of(rows)
        ordered = found.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).sort_by("offset")
        return LogRows(lambda: rows, ordered)

    def no_events(self) -> Stretch:
        """Return a stretch for structure changes that no event follows."""
        return Stretch(
            rows=LogRows.of(self.rows.limit(0)),
            topic=self.topic,
            upto=-1,
            schemas={},
            snapshot_end=self.snapshot_end,
        )


def replay(recorded: Recorded, table: AppliedTable, step: Callable[[], None] = do_nothing) -> None:
    """Apply the events beyond the table's position, a limited number at a time.

    ``step`` is called after each batch. A table that cannot go on stops.
    """
    recorded = recorded.after(table.position.offset)
    waiting = landings(summary(recorded.rows))
    logger.info("replaying", table=str(table.schema.table), landings=len(waiting))
    changes = _bound(recorded, table, waiting)
    while waiting and table.following:
        batch = _batch(recorded, waiting)
        stretch = recorded.stretch(batch)
        table.remember_snapshot(_snapshots(stretch).get(recorded.topic, frozenset()))
        if table.following:
            inside = [change for change in changes if change.after <= stretch.upto]
            table.apply(replace(stretch, notes=inside))
        changes = [change for change in changes if change.after > stretch.upto]
        waiting = waiting[len(batch) :]
        step()
    if changes and table.following:
        table.apply(replace(recorded.no_events(), notes=changes))


def _snapshots(stretch: Stretch) -> Mapping[str, frozenset[int]]:
    """Return the lsns of the snapshots among the events, by topic."""
    events = stretch.rows.events
    if events is not None:
        with suppress(NotLocalError):
            return local_snapshots(events, stretch.schemas)
    return spark_summary.snapshots(stretch.rows.frame(), stretch.schemas)


def _bound(recorded: Recorded, table: AppliedTable, waiting: Sequence[Landing]) -> list[BoundNote]:
    """Place the notes among all the events that are still to be applied."""
    ids = [landed_values.schema_ids([landing])[recorded.topic] for landing in waiting]
    schemas = recorded.schemas_of(frozenset[int]().union(*ids))
    return table.bind_notes(recorded.notes, LogRows.of(recorded.rows), schemas)


def _batch(recorded: Recorded, waiting: Sequence[Landing]) -> Sequence[Landing]:
    """Return the landings of the next batch, within the budget.

    It has as many more as it takes to keep a changed key in one batch: a change of a key is two
    events of one transaction. No cut separates them, but a landing may.
    """
    batch = landed_values.within_budget(waiting, recorded.budget)
    while len(batch) < len(waiting) and _ends_in_first_half(recorded.rows, batch[-1].number):
        batch = waiting[: len(batch) + 1]
    return batch


def _ends_in_first_half(mine: DataFrame, landing: int) -> bool:
    """Return whether the last event up to the landing is the first half of a key's change.

    Tombstones do not count.
    """
    events = mine.where((F.col("landing") <= landing) & F.col("value").isNotNull())
    newest = events.select("offset", is_moved(NEW_KEY).alias("first")).orderBy(F.desc("offset"))
    return any(row["first"] for row in newest.take(1))
