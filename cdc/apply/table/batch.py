"""Applies the events of one table up to a cut in one commit: decode, refuse, reduce, write.

A crash may come anywhere between the durable steps: refused events go to quarantine first
(recording one twice changes nothing), then rows and position go into the table in one commit. Too
many refused events (cdc/apply/table/flood.py) stop the table before either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import structlog
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes import changed_keys, reduce
from cdc.apply.changes.decode import decode_table
from cdc.apply.table import flood
from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name
from cdc.lake.records.quarantine import Quarantine, RefusedEvent
from cdc.lake.table import store
from cdc.lake.table.merge_plan import (
    BY_OPERATION,
    DELETED,
    KEEP,
    OFFSET,
    REASON,
    UNRESOLVED,
    merge_plan,
    stored_columns,
)
from cdc.lake.table.positions import Position
from cdc.tables import TableMode

NO_ROW_TO_KEEP_FROM = "an unchanged value has no row in the lake to be taken from"
REFUSED_BYTES: Final = 16 << 20
"""The most refused events, in bytes, that the driver holds at a time; or one larger event."""
_HEADERS: Final = "aggregate(headers, 0, (n, h) -> n + coalesce(length(h.value), 0))"
_BYTES: Final = (
    f"1024 + coalesce(length(key), 0) + coalesce(length(value), 0) + coalesce({_HEADERS}, 0)"
)
_BYTES_SO_FAR: Final = f"sum({_BYTES}) OVER (PARTITION BY offset < 0 ORDER BY offset)"
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Refused:
    """What the batch cannot keep, as far as is known yet."""

    decoded: int  # changes that decoding refused; they are not counted as applied
    reasons: DataFrame | None  # offset and reason

    def plus(self, reasons: DataFrame) -> "_Refused":
        more = reasons.select(OFFSET, REASON)
        return replace(self, reasons=more if self.reasons is None else self.reasons.union(more))


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A table before the commit, and the quarantine for its refused events."""

    session: SparkSession
    path: str
    schema: TableSchema
    position: Position
    placeholder: str  # stands for a value that did not change
    quarantine: Quarantine
    policy: Job = field(default_factory=Job)

    def commit(self, mine: DataFrame, upto: int, schemas: Mapping[int, str]) -> Position:
        """Apply rows of the log and return the position in the table's new commit.

        Raises TABLE_STOPPED, before anything is written, if too many events are refused.
        """
        decoded = decode_table(mine, schemas, self.schema, placeholder=self.placeholder).persist()
        try:
            changes, facts = self._whole(decoded)
            refused = _Refused(decoded=facts["refused"], reasons=None)
            if facts["refused"]:
                refused = refused.plus(_reasons(changes))
            after = replace(
                self.position,
                offset=upto,
                rows_applied=self.position.rows_applied + facts["events"] - facts["refused"],
                **{name: getattr(self.position, name) + facts[name] for name in BY_OPERATION},
            )
            return self._write(mine, changes, facts, refused, after)
        finally:
            decoded.unpersist()

    def _whole(self, decoded: DataFrame) -> tuple[DataFrame, Row]:
        """Return the changes, those of a key with all their values, and an overview of them."""
        facts = reduce.overview(decoded).collect()[0]
        if not facts["moves"]:
            return decoded, facts
        target = self.session.read.format("delta").load(self.path)
        changes = changed_keys.resolve(decoded, target, self.schema).localCheckpoint()
        return changes, reduce.overview(changes).collect()[0]

    def _write(
        self, mine: DataFrame, changes: DataFrame, facts: Row, refused: _Refused, after: Position
    ) -> Position:
        truncated = facts["last_truncate"] is not None
        if truncated:
            changes = reduce.after_truncate(changes, facts["last_truncate"])
        if self.schema.mode is TableMode.APPEND:
            after = self._refuse(mine, refused, after)
            rows = changes.where(F.col(REASON).isNull() & F.col("_cdc_op").isin("c", "r"))
            self._add(rows, after, truncated=truncated)
            return after
        rows = self._reduced(changes, carry=bool(facts["keeps"]), empty=truncated)
        return self._merge_or_add(mine, rows, facts, refused, after)

    def _reduced(self, changes: DataFrame, *, carry: bool, empty: bool) -> DataFrame:
        """Return one row per key, or per copy of a row; a row with a reason cannot be made."""
        if self.schema.mode is TableMode.KEYED:
            return reduce.latest_per_key(changes, self.schema, carry=carry)
        net = reduce.net_copies(changes, self.schema)
        target = self.session.read.format("delta").load(self.path)
        held = reduce.lake_copies(target.limit(0) if empty else target, net)
        return reduce.multiset_rows(net, held, self.schema)

    def _merge_or_add(
        self, mine: DataFrame, rows: DataFrame, facts: Row, refused: _Refused, after: Position
    ) -> Position:
        # Only these two find reasons that decoding did not see.
        if facts["keeps"] or self.schema.mode is TableMode.MULTISET:
            refused = refused.plus(_reasons(rows))
        good = rows.where(F.col(REASON).isNull())
        truncated = facts["last_truncate"] is not None
        if truncated or not self.position.rows_applied:
            if facts["keeps"]:
                lost = F.col(KEEP).isNotNull() & ~F.col(DELETED)
                refused = refused.plus(_without_row(good.where(lost)))
                good = good.where(~lost)
            after = self._refuse(mine, refused, after)
            self._add(good, after, truncated=truncated)
            return after
        return self._merge(mine, good, refused, after, keep=bool(facts["keeps"]))

    def _merge(
        self, mine: DataFrame, rows: DataFrame, refused: _Refused, after: Position, *, keep: bool
    ) -> Position:
        plan = merge_plan(self.schema, keep=keep)
        if not keep:
            after = self._refuse(mine, refused, after)
        # Nothing is in quarantine yet: a merge that fails leaves nothing behind.
        if not keep or refused.reasons is None or refused.reasons.isEmpty():
            try:
                store.merge(self.session, self.path, rows, plan, after)
            except (PySparkException, Py4JJavaError) as error:
                # Which of the two is raised depends on where in the merge Spark meets the row.
                if UNRESOLVED not in str(error):
                    raise
            else:
                return after
        return self._merge_resolved(mine, rows, refused, after)

    def _merge_resolved(
        self, mine: DataFrame, rows: DataFrame, refused: _Refused, after: Position
    ) -> Position:
        """Merge without the rows that find nothing to keep; rare, and a join with the target."""
        target = self.session.read.format("delta").load(self.path)
        lost = reduce.unresolved(rows, target, self.schema).select(OFFSET).persist()
        try:
            after = self._refuse(mine, refused.plus(_without_row(lost)), after)
            whole = rows.join(lost, OFFSET, "left_anti")
            store.merge(self.session, self.path, whole, merge_plan(self.schema, keep=True), after)
        finally:
            lost.unpersist()
        return after

    def _add(self, rows: DataFrame, after: Position, *, truncated: bool) -> None:
        """Append rows to a table that has none with their key: what a MERGE would insert."""
        new = rows.where(~F.col(DELETED))
        writing = store.overwrite if truncated else store.append
        writing(self.path, new.selectExpr(*map(spark_name, stored_columns(self.schema))), after)

    def _refuse(self, mine: DataFrame, refused: _Refused, after: Position) -> Position:
        """Put everything that the batch refuses into quarantine; called once, before the write."""
        if refused.reasons is None:
            return after
        by_offset = refused.reasons.groupBy(OFFSET).agg(F.min(REASON))
        reasons = by_offset.toDF("offset", "reason").persist()
        try:
            if not (count := reasons.count()):
                return after
            if flood.possible(count, self.policy):
                self._stop_flood(mine, reasons)
            self._put_into_quarantine(mine.join(reasons, "offset"))
        finally:
            reasons.unpersist()
        table = str(self.schema.table)
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
            self.quarantine.add(self._events(these.collect()))

    def _stop_flood(self, mine: DataFrame, reasons: DataFrame) -> None:
        """Raise TABLE_STOPPED if there are more refused events than quarantine may take."""
        events = mine.where("value IS NOT NULL").join(reasons, "offset", "left")
        events = events.selectExpr("offset", "reason AS _reason")
        facts = events.selectExpr(*flood.FACTS).collect()[0]
        islands = events.selectExpr("_reason", f"{flood.ISLANDS} AS island")
        runs = islands.where("_reason IS NOT NULL").groupBy("island").count()
        run = runs.agg(F.max("count")).collect()[0][0]
        reason = flood.flooded(facts["events"], facts["refused"], run, self.policy)
        if reason is not None:
            first = f"the first at offset {facts['first_offset']}: {facts['first_reason']}"
            remedy = flood.remedy(self.schema.table)
            raise CdcError(ErrorKind.TABLE_STOPPED, f"{reason}, {first}", remedy=remedy)

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
                key_schema_id=row["key_schema_id"],
                headers=tuple((h["key"], _bytes(h["value"])) for h in row["headers"] or ()),
                epoch=self.position.epoch,
            )
            for row in rows
        ]


def _reasons(rows: DataFrame) -> DataFrame:
    return rows.where(F.col(REASON).isNotNull())


def _without_row(rows: DataFrame) -> DataFrame:
    return rows.select(OFFSET).withColumn(REASON, F.lit(NO_ROW_TO_KEEP_FROM))


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
