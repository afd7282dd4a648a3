"""Puts events that a batch cannot keep into quarantine, or stops the table for too many of them.

Recording an event twice changes nothing, so a batch that was interrupted is simply repeated.
"""

from dataclasses import dataclass, replace
from typing import Final

import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.reasons import NO_ROW_TO_KEEP_FROM
from cdc.apply.refused import too_many_refused
from cdc.apply.refused.refused_events import refused_events
from cdc.config import Job
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.merge_plan import OFFSET, REASON
from cdc.lake.table.positions import Position
from cdc.tables import TableId

REFUSED_BYTES: Final = 16 << 20
"""The most refused events, in bytes, that the driver holds at a time; or one larger event."""
_HEADERS: Final = "aggregate(headers, 0, (n, h) -> n + coalesce(length(h.value), 0))"
_BYTES: Final = (
    f"1024 + coalesce(length(key), 0) + coalesce(length(value), 0) + coalesce({_HEADERS}, 0)"
)
_BYTES_SO_FAR: Final = f"sum({_BYTES}) OVER (PARTITION BY offset < 0 ORDER BY offset)"
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Refused:
    """Collect what the batch cannot keep, as far as is known yet."""

    decoded: int  # changes that decoding refused; they are not counted as applied
    reasons: DataFrame | None  # offset and reason

    def plus(self, reasons: DataFrame) -> "Refused":
        """Return these and the events of ``reasons``, which has an offset and a reason each."""
        more = reasons.select(OFFSET, REASON)
        return replace(self, reasons=more if self.reasons is None else self.reasons.union(more))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineWriter:
    """Moves refused events of one table into quarantine."""

    table: TableId
    epoch: int
    quarantine: Quarantine
    policy: Job

    def refuse(self, mine: DataFrame, refused: Refused, after: Position) -> Position:
        """Put everything that a batch refuses into quarantine; return its position with the counts.

        ``mine`` are the batch's rows of the log. Called once, before the write. Raises
        TABLE_STOPPED, before anything is written, if too many events are refused.
        """
        if refused.reasons is None:
            return after
        by_offset = refused.reasons.groupBy(OFFSET).agg(F.min(REASON))
        reasons = by_offset.toDF("offset", "reason").persist()
        try:
            if not (count := reasons.count()):
                return after
            if too_many_refused.can_be_too_many(count, self.policy):
                self._stop_for_too_many(mine, reasons)
            self._put_into_quarantine(mine.join(reasons, "offset"))
        finally:
            reasons.unpersist()
        table = str(self.table)
        logger.warning("events refused", table=table, events=count)
        return replace(
            after,
            rows_applied=after.rows_applied - max(0, count - refused.decoded),
            refused=self.quarantine.open_count(table),
        )

    def _put_into_quarantine(self, rows: DataFrame) -> None:
        """Add them part by part: all of their values may be more than the driver can hold."""
        parts = rows.selectExpr("offset", f"{_BYTES_SO_FAR} DIV {REFUSED_BYTES} AS part")
        bounds = parts.groupBy("part").agg(F.min("offset"), F.max("offset")).orderBy("part")
        for _, first, last in bounds.collect():
            these = rows.where(F.col("offset").between(first, last))
            events = refused_events(these.collect(), self.table, self.epoch)
            self.quarantine.add(events)

    def _stop_for_too_many(self, mine: DataFrame, reasons: DataFrame) -> None:
        """Raise TABLE_STOPPED if there are more refused events than quarantine may take."""
        events = mine.where("value IS NOT NULL").join(reasons, "offset", "left")
        events = events.selectExpr("offset", "reason AS _reason")
        facts = events.selectExpr(*too_many_refused.FACTS).collect()[0]
        islands = events.selectExpr("_reason", f"{too_many_refused.ISLANDS} AS island")
        runs = islands.where("_reason IS NOT NULL").groupBy("island").count()
        run = runs.agg(F.max("count")).collect()[0][0]
        reason = too_many_refused.why_too_many(facts["events"], facts["refused"], run, self.policy)
        if reason is not None:
            raise too_many_refused.stopped(
                self.table, reason, facts["first_offset"], facts["first_reason"]
            )


def with_reason(rows: DataFrame) -> DataFrame:
    """Return the rows that have a reason to be refused."""
    return rows.where(F.col(REASON).isNotNull())


def without_row(rows: DataFrame) -> DataFrame:
    """Refuse the rows, since the lake has no row from which they could keep a value."""
    return rows.select(OFFSET).withColumn(REASON, F.lit(NO_ROW_TO_KEEP_FROM))
