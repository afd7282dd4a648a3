"""The events of one table up to a cut, as one commit: decode, refuse, reduce, write.

Every durable step comes in an order that a crash may interrupt anywhere: refused events go to
quarantine first (recording one twice changes nothing), then the rows and the position go into
the table in one commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply import moves, order
from cdc.apply.decode import decode_table
from cdc.apply.merge_plan import (
    DELETED,
    KEEP,
    OFFSET,
    REASON,
    UNRESOLVED,
    merge_plan,
    quoted,
    stored,
)
from cdc.events.schema import TableSchema
from cdc.lake import store
from cdc.lake.progress import Position
from cdc.lake.quarantine import Quarantine, RefusedEvent
from cdc.tables import TableMode

NO_ROW_TO_KEEP_FROM = "an unchanged value has no row in the lake to be taken from"
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One table as it is before the commit, and where its refused events go."""

    session: SparkSession
    path: str
    schema: TableSchema
    position: Position
    token: str  # stands for a value that did not change
    quarantine: Quarantine

    def commit(self, mine: DataFrame, upto: int, schemas: Mapping[int, str]) -> Position:
        """Apply rows of the log; returns the position that the table's new commit holds."""
        decoded = decode_table(mine, schemas, self.schema, token=self.token).persist()
        try:
            changes, facts = self._whole(decoded)
            if facts["refused"]:
                self._refuse(mine, _reasons(changes))
            after = replace(
                self.position,
                offset=upto,
                rows_applied=self.position.rows_applied + facts["events"] - facts["refused"],
                refused=self.position.refused + facts["refused"],
            )
            return self._write(mine, changes, facts, after)
        finally:
            decoded.unpersist()

    def _whole(self, decoded: DataFrame) -> tuple[DataFrame, Row]:
        """The changes, those of a key with all their values; and the overview of them."""
        facts = order.overview(decoded).collect()[0]
        if not facts["moves"]:
            return decoded, facts
        target = self.session.read.format("delta").load(self.path)
        changes = moves.resolve(decoded, target, self.schema).localCheckpoint()
        return changes, order.overview(changes).collect()[0]

    def _write(self, mine: DataFrame, changes: DataFrame, facts: Row, after: Position) -> Position:
        truncated = facts["last_truncate"] is not None
        if truncated:
            changes = order.after_truncate(changes, facts["last_truncate"])
        if self.schema.mode is TableMode.APPEND:
            rows = changes.where(F.col(REASON).isNull() & F.col("_cdc_op").isin("c", "r"))
            self._add(rows, after, truncated=truncated)
            return after
        rows = self._reduced(changes, carry=bool(facts["keeps"]), empty=truncated)
        return self._merge_or_add(mine, rows, facts, after)

    def _reduced(self, changes: DataFrame, *, carry: bool, empty: bool) -> DataFrame:
        """One row per key, or per copy of a row; a row with a reason cannot be made."""
        if self.schema.mode is TableMode.KEYED:
            return order.latest_per_key(changes, self.schema, carry=carry)
        net = order.net_copies(changes, self.schema)
        target = self.session.read.format("delta").load(self.path)
        held = order.held_copies(target.limit(0) if empty else target, net)
        return order.multiset_rows(net, held, self.schema)

    def _merge_or_add(
        self, mine: DataFrame, rows: DataFrame, facts: Row, after: Position
    ) -> Position:
        # Only these two can find a reason that decoding did not see.
        if facts["keeps"] or self.schema.mode is TableMode.MULTISET:
            after = self._refused_late(mine, _reasons(rows), after)
        good = rows.where(F.col(REASON).isNull())
        truncated = facts["last_truncate"] is not None
        if truncated or not self.position.rows_applied:
            if facts["keeps"]:
                lost = good.where(F.col(KEEP).isNotNull() & ~F.col(DELETED))
                after = self._refused_late(mine, _without_row(lost), after)
                good = good.where(F.col(KEEP).isNull() | F.col(DELETED))
            self._add(good, after, truncated=truncated)
            return after
        return self._merge(mine, good, after, keep=bool(facts["keeps"]))

    def _merge(self, mine: DataFrame, rows: DataFrame, after: Position, *, keep: bool) -> Position:
        plan = merge_plan(self.schema, keep=keep)
        try:
            store.merge(self.session, self.path, rows, plan, after)
        except PySparkException as error:
            if UNRESOLVED not in str(error):
                raise
        else:
            return after
        # Rare, so it is asked for only when a merge has failed for it: a join with the target.
        target = self.session.read.format("delta").load(self.path)
        lost = order.unresolved(rows, target, self.schema).select(OFFSET).persist()
        after = self._refused_late(mine, lost.withColumn(REASON, F.lit(NO_ROW_TO_KEEP_FROM)), after)
        store.merge(self.session, self.path, rows.join(lost, OFFSET, "left_anti"), plan, after)
        lost.unpersist()
        return after

    def _add(self, rows: DataFrame, after: Position, *, truncated: bool) -> None:
        """Rows for a table that has none, or none with their key: what a MERGE would insert."""
        new = rows.where(~F.col(DELETED))
        writing = store.overwrite if truncated else store.append
        writing(self.path, new.selectExpr(*map(quoted, stored(self.schema))), after)

    def _refused_late(self, mine: DataFrame, reasons: DataFrame, after: Position) -> Position:
        found = self._refuse(mine, reasons)
        return replace(
            after, refused=after.refused + found, rows_applied=after.rows_applied - found
        )

    def _refuse(self, mine: DataFrame, reasons: DataFrame) -> int:
        """Put these events into quarantine; returns how many they are."""
        known = reasons.select(F.col(OFFSET).alias("offset"), F.col(REASON).alias("reason"))
        rows = mine.join(known.dropDuplicates(["offset"]), "offset").collect()
        if rows:
            self.quarantine.add(self._events(rows))
            logger.warning("events refused", table=str(self.schema.table), events=len(rows))
        return len(rows)

    def _events(self, rows: Sequence[Row]) -> list[RefusedEvent]:
        now = datetime.now(UTC)
        return [
            RefusedEvent(
                table=str(self.schema.table),
                topic=row["topic"],
                partition=row["partition"],
                offset=row["offset"],
                key=_bytes(row["key"]),
                value=_bytes(row["value"]),
                value_schema_id=row["value_schema_id"],
                reason=row["reason"],
                quarantined_at=now,
            )
            for row in rows
        ]


def _reasons(rows: DataFrame) -> DataFrame:
    return rows.where(F.col(REASON).isNotNull())


def _without_row(rows: DataFrame) -> DataFrame:
    return rows.select(OFFSET).withColumn(REASON, F.lit(NO_ROW_TO_KEEP_FROM))


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
