"""Applies the events of one table up to a cut in one commit: decode, refuse, reduce, write.

A crash may come anywhere between the durable steps: refused events go to quarantine first
(recording one twice changes nothing), then rows and position go into the table in one commit. Too
many refused events (cdc/apply/refused/too_many_refused.py) stop the table before either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes import changed_keys, reduce
from cdc.apply.changes.decode import decode_table
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.quarantine_writer import QuarantineWriter, Refused, with_reason, without_row
from cdc.apply.table.table_content import TableContent
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Applies one batch of events to a table; ``commit`` is called once."""

    session: SparkSession
    path: str
    schema: TableSchema
    position: Position
    context: ApplyContext

    def commit(self, mine: DataFrame, upto: int, schemas: Mapping[int, str]) -> Position:
        """Apply rows of the log and return the position in the table's new commit.

        Raises TABLE_STOPPED, before anything is written, if too many events are refused.
        """
        decoded = decode_table(
            mine, schemas, self.schema, placeholder=self.context.placeholder
        ).persist()
        try:
            changes, facts = self._whole(decoded)
            refused = Refused(decoded=facts["refused"], reasons=None)
            if facts["refused"]:
                refused = refused.plus(with_reason(changes))
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
        self, mine: DataFrame, changes: DataFrame, facts: Row, refused: Refused, after: Position
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
        self, mine: DataFrame, rows: DataFrame, facts: Row, refused: Refused, after: Position
    ) -> Position:
        # Only these two find reasons that decoding did not see.
        if facts["keeps"] or self.schema.mode is TableMode.MULTISET:
            refused = refused.plus(with_reason(rows))
        good = rows.where(F.col(REASON).isNull())
        truncated = facts["last_truncate"] is not None
        if truncated or not self.position.rows_applied:
            if facts["keeps"]:
                lost = F.col(KEEP).isNotNull() & ~F.col(DELETED)
                refused = refused.plus(without_row(good.where(lost)))
                good = good.where(~lost)
            after = self._refuse(mine, refused, after)
            self._add(good, after, truncated=truncated)
            return after
        return self._merge(mine, good, refused, after, keep=bool(facts["keeps"]))

    def _merge(
        self, mine: DataFrame, rows: DataFrame, refused: Refused, after: Position, *, keep: bool
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
        self, mine: DataFrame, rows: DataFrame, refused: Refused, after: Position
    ) -> Position:
        """Merge without the rows that find nothing to keep; rare, and a join with the target."""
        target = self.session.read.format("delta").load(self.path)
        lost = reduce.unresolved(rows, target, self.schema).select(OFFSET).persist()
        try:
            after = self._refuse(mine, refused.plus(without_row(lost)), after)
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

    def _refuse(self, mine: DataFrame, refused: Refused, after: Position) -> Position:
        writer = QuarantineWriter(
            table=self.schema.table,
            epoch=self.position.epoch,
            quarantine=self.context.quarantine,
            policy=self.context.policy,
        )
        return writer.refuse(mine, refused, after)


def by_spark(
    session: SparkSession, path: str, content: TableContent, context: ApplyContext
) -> Batch:
    """Return a batch of the table at ``path``, which holds ``content``; the session is its own."""
    return Batch(
        session=session,
        path=path,
        schema=content.schema,
        position=content.position,
        context=context,
    )
