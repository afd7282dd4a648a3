"""One table of the lake: from its events up to a cut to one commit that holds the position."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import structlog
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.decode import decode_table
from cdc.apply.merge_plan import (
    COPY,
    DELETED,
    KEEP,
    OFFSET,
    OP,
    REASON,
    ROW_HASH,
    merge_plan,
    quoted,
    stored,
)
from cdc.apply.order import latest_per_key, multiset_rows
from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Additive, Incompatible, TableSchema, diff, table_schema_from_avro
from cdc.lake import maintenance, store
from cdc.lake.ledger import TableEntry
from cdc.lake.progress import Position, open_table
from cdc.lake.quarantine import Quarantine, RefusedEvent
from cdc.tables import TableMode, TableState

MAINTAIN_EVERY: Final = 16  # commits between two looks at the number of small files
VACUUM_SECONDS: Final = 3600.0  # least time between two vacuums of a table in one run
logger = structlog.get_logger(__name__)


class AppliedTable:
    """The table's schema, position and state; used by one thread at a time."""

    def __init__(
        self,
        *,
        session: SparkSession,  # its own: the position is set in the session's configuration
        path: str,
        schema: TableSchema,
        position: Position,
        quarantine: Quarantine,
        placeholder: str,
        policy: Job,
    ) -> None:
        self._session = session
        self.path = path
        self.schema = schema
        self.position = position
        self._quarantine = quarantine
        self._placeholder = placeholder
        self._policy = policy
        self._reason = ""
        self.following = True
        self._commits = 0
        self._vacuumed = time.monotonic()

    def stop(self, reason: str, *, remedy: str) -> None:
        """Follow no more; the other tables go on, and the reason stands in the ledger."""
        self.following = False
        self._reason = f"{reason}; remedy: {remedy}"
        logger.error("table stopped", table=str(self.schema.table), reason=self._reason)

    def entry(self, offset: int, *, streaming: bool) -> TableEntry:
        """The table's part of the ledger's row for a cut that ends at ``offset``."""
        opened = open_table(self.path)
        return TableEntry(
            table=str(self.schema.table),
            path=self.path,
            version=opened.version() if opened else -1,
            offset=offset,
            state=self._state(streaming=streaming).value,
            reason=self._reason,
            rows_applied=self.position.rows_applied,
            refused=self.position.refused,
        )

    def _state(self, *, streaming: bool) -> TableState:
        if not self.following:
            return TableState.STOPPED
        if self.position.refused:
            return TableState.DEGRADED
        return TableState.STREAMING if streaming else TableState.SNAPSHOTTING

    def apply(self, rows: DataFrame, *, topic: str, upto: int, schemas: Mapping[int, str]) -> None:
        """Bring the table to offset ``upto`` from rows of the log; stop it where that fails.

        An error that is not the table's own (the disk, the session) is raised.
        """
        try:
            self._follow(schemas)
            mine = rows.where(
                (F.col("topic") == topic) & F.col("offset").between(self.position.offset + 1, upto)
            )
            self._commit(mine, upto, schemas)
            self._maintain()
        except CdcError as error:
            self.stop(error.message, remedy=error.remedy)
        except AnalysisException as error:
            self.stop(
                f"the lake's table does not take the change: {error.getCondition()}",
                remedy="see the job's log; delete the table's directory to rebuild it",
            )

    def _follow(self, schemas: Mapping[int, str]) -> None:
        """Widen the table for columns that a writer schema has more; refuse other differences."""
        for text in schemas.values():
            written = table_schema_from_avro(
                text, table=self.schema.table, key=self.schema.key, mode=self.schema.mode
            )
            found = diff(self.schema, written)
            if isinstance(found, Incompatible):
                raise CdcError(
                    ErrorKind.TABLE_STOPPED,
                    found.reason,
                    remedy=f"delete {self.path} and restart the job; it is rebuilt from the log",
                )
            if isinstance(found, Additive):
                store.add_columns(self._session, self.path, found.columns, self.position)
                columns = self.schema.columns + found.columns
                self.schema = replace(self.schema, columns=columns)

    def _commit(self, mine: DataFrame, upto: int, schemas: Mapping[int, str]) -> None:
        changes = decode_table(mine, schemas, self.schema, token=self._placeholder).persist()
        try:
            facts = _facts(changes)
            self._refuse(mine, changes, facts)
            position = replace(
                self.position,
                offset=upto,
                rows_applied=self.position.rows_applied + facts["events"] - facts["refused"],
                refused=self.position.refused + facts["refused"],
            )
            self._write(changes.where(F.col(REASON).isNull()), facts, position)
            self.position = position
        finally:
            changes.unpersist()

    def _refuse(self, mine: DataFrame, changes: DataFrame, facts: Row) -> None:
        """Put refused events into quarantine, before the position moves past them."""
        if not facts["refused"]:
            return
        reasons = changes.where(F.col(REASON).isNotNull()).select(
            F.col(OFFSET).alias("offset"), F.col(REASON).alias("reason")
        )
        now = datetime.now(UTC)
        found = [
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
            for row in mine.join(reasons.dropDuplicates(["offset"]), "offset").collect()
        ]
        self._quarantine.add(found)
        logger.warning("events refused", table=str(self.schema.table), events=len(found))

    def _write(self, changes: DataFrame, facts: Row, position: Position) -> None:
        """One commit: overwrite after a TRUNCATE, append to an empty table, merge otherwise."""
        truncated = facts["truncated_at"] is not None
        if truncated:
            changes = changes.where(F.col(OFFSET) > facts["truncated_at"])
        if self.schema.mode is TableMode.MULTISET:
            rows = multiset_rows(changes, self._copies(truncated=truncated), self.schema)
        elif self.schema.mode is TableMode.APPEND:
            rows = changes
        else:
            rows = latest_per_key(changes, self.schema)
        if truncated:
            store.overwrite(self.path, self._new_rows(rows), position)
        elif self.schema.mode is TableMode.APPEND or not self.position.rows_applied:
            store.append(self.path, self._new_rows(rows), position)
        else:
            plan = merge_plan(self.schema, keep=bool(facts["keeps"]))
            store.merge(self._session, self.path, rows, plan, position)

    def _new_rows(self, rows: DataFrame) -> DataFrame:
        """Rows for a table that has none: what a MERGE into it would insert."""
        return rows.where(~F.col(DELETED)).select(*(quoted(name) for name in stored(self.schema)))

    def _copies(self, *, truncated: bool) -> DataFrame:
        """How often each row is there, for tables without a key."""
        rows = self._session.read.format("delta").load(self.path)
        return rows.where(F.lit(not truncated)).groupBy(ROW_HASH).agg(F.count("*").alias(COPY))

    def _maintain(self) -> None:
        """Compact the table, here where it is written: no other commit can come between."""
        self._commits += 1
        if self._commits % MAINTAIN_EVERY:
            return
        found = maintenance.files(self.path)
        if maintenance.worth_optimizing(found, self._policy.optimize_small_files):
            maintenance.optimize(self._session, self.path, self.position.metadata())
            logger.info("optimized", table=str(self.schema.table), small_files=found.small)
        if time.monotonic() - self._vacuumed > VACUUM_SECONDS:
            maintenance.vacuum(self._session, self.path, self._policy.vacuum_retention_hours)
            self._vacuumed = time.monotonic()


def _facts(changes: DataFrame) -> Row:
    """What decides how the changes are written; one Spark job."""
    kept = F.col(REASON).isNull()
    return changes.agg(
        F.count("*").alias("events"),
        F.count_if(~kept).alias("refused"),
        F.max(F.when(kept & (F.col(OP) == "t"), F.col(OFFSET))).alias("truncated_at"),
        F.count_if(kept & F.col(KEEP).isNotNull()).alias("keeps"),
    ).collect()[0]


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
