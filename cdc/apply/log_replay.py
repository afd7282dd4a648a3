"""Applies events of one table from the log again, by the stream's own code, in bounded batches."""

from collections.abc import Callable, Sequence

import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import is_moved
from cdc.apply.rounds import log_slice
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.structure_notes import PlacedNote
from cdc.events.envelope import NEW_KEY
from cdc.kafka.registry_client import SchemaLookup
from cdc.land import landing as landed_values
from cdc.land.landing import Landing
from cdc.land.query import landings, summary

logger = structlog.get_logger(__name__)


def nothing() -> None:
    """Do nothing: the default of ``step``."""


def replay(
    mine: DataFrame,
    topic: str,
    table: AppliedTable,
    notes: Sequence[PlacedNote],
    *,
    schemas_of: SchemaLookup,
    budget: int,
    snapshot_end: int | None = 0,
    step: Callable[[], None] = nothing,
) -> None:
    """Apply the events in ``mine`` beyond the table's position, ``budget`` events at a time.

    ``mine`` are the log's rows of the table's topic, ``notes`` all structure changes up to the same
    place. ``step`` is called after each batch. A table that cannot go on stops.
    """
    beyond = mine.where(F.col("offset") > table.position.offset)
    waiting = landings(summary(beyond))
    logger.info("replaying", table=str(table.schema.table), landings=len(waiting))
    ids = [landed_values.schema_ids([landing])[topic] for landing in waiting]
    changes = table.bound(notes, beyond, schemas_of(frozenset[int]().union(*ids)))
    while waiting and table.following:
        taken = _whole_changes(beyond, waiting, landed_values.within_budget(waiting, budget))
        schemas = schemas_of(landed_values.schema_ids(taken)[topic])
        part = beyond.where(F.col("landing").between(taken[0].number, taken[-1].number))
        upto = landed_values.last_offsets(taken)[topic]
        table.read_at(log_slice.snapshots(part, schemas).get(topic, frozenset()))
        if table.following:
            before = [change for change in changes if change.after <= upto]
            table.apply(
                part,
                topic=topic,
                upto=upto,
                schemas=schemas,
                notes=before,
                snapshot_end=snapshot_end,
            )
        changes = [change for change in changes if change.after > upto]
        waiting = waiting[len(taken) :]
        step()
    if changes and table.following:
        table.apply(
            beyond.limit(0),
            topic=topic,
            upto=-1,
            schemas={},
            notes=changes,
            snapshot_end=snapshot_end,
        )


def _whole_changes(
    mine: DataFrame, waiting: Sequence[Landing], taken: Sequence[Landing]
) -> Sequence[Landing]:
    """Return ``taken`` and as many landings more as it takes to keep a changed key in one batch.

    A change of a key is two events of one transaction. No cut separates them, but a landing may.
    """
    while len(taken) < len(waiting) and _ends_in_first_half(mine, taken[-1].number):
        taken = waiting[: len(taken) + 1]
    return taken


def _ends_in_first_half(mine: DataFrame, landing: int) -> bool:
    """Return whether the last event up to the landing is the first half of a key's change.

    Tombstones do not count.
    """
    events = mine.where((F.col("landing") <= landing) & F.col("value").isNotNull())
    newest = events.select("offset", is_moved(NEW_KEY).alias("first")).orderBy(F.desc("offset"))
    return any(row["first"] for row in newest.take(1))
