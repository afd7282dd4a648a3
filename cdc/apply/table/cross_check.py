"""Applies some of the driver's batches by Spark as well, beside the table, and compares the two.

It proves in a running job what the tests prove: that both ways make the same table. Spark merges
into a shallow clone of the version before the batch, which copies no data.
"""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.local.driver_commit import Committed
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.batch import by_spark
from cdc.apply.table.spark_plans import WHOLE_FILES, suit
from cdc.apply.table.table_content import TableContent
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.lake.table.merge_plan import OFFSET
from cdc.land.log_rows import LogRows
from cdc.tables import TableId

logger = structlog.get_logger(__name__)


class CrossCheck:
    """Compares one of so many batches of the table at ``path``; used by one thread at a time."""

    def __init__(
        self, session: SparkSession, path: str, context: ApplyContext, directory: Path
    ) -> None:
        """Keep what differs in ``directory``, which belongs to the table alone."""
        self._session, self._path, self._context = session, path, context
        self._directory = directory
        self._batches = 0

    def is_due(self) -> bool:
        """Count a batch; return whether it is one to compare. The first is one."""
        self._batches += 1
        return (self._batches - 1) % self._context.policy.cross_check == 0

    def compare(
        self, before: TableContent, part: LogRows, made: Committed, schemas: Mapping[int, str]
    ) -> None:
        """Apply the batch to the version before it by Spark.

        ``before`` was the table, ``made`` the driver has made of it. Raises TABLE_STOPPED if Spark
        makes another table; both are kept then.
        """
        clone = str(self._directory / "by_spark")
        shutil.rmtree(self._directory, ignore_errors=True)
        store.clone(self._session, self._path, clone, made.version - 1)
        quarantine = Quarantine(str(self._directory / "quarantine"))
        context = replace(self._context, quarantine=quarantine, driver=None)
        suit(self._session, WHOLE_FILES)
        batch = by_spark(self._session, clone, before, context)
        position = batch.commit(part.frame(), made.position.offset, schemas)
        refused = {event.offset: event.reason for event in quarantine.rows(with_values=False)}
        found = [
            *_unless(replace(position, refused=made.position.refused) == made.position, "position"),
            *_unless(refused == dict(made.refused), "refused events"),
            *_unless(self._new_rows_equal(clone, before), "new rows"),
            *_unless(self._old_rows_equal(clone, before), "rows that are left"),
        ]
        if found:
            raise self._differs(before, made, found, clone)
        shutil.rmtree(self._directory, ignore_errors=True)
        logger.info("both ways are equal", table=str(before.schema.table), version=made.version)

    def _new_rows_equal(self, clone: str, before: TableContent) -> bool:
        new = F.col(OFFSET) > before.position.offset
        ours, theirs = (store.read(self._session, at).where(new) for at in (self._path, clone))
        return ours.exceptAll(theirs).isEmpty() and theirs.exceptAll(ours).isEmpty()

    def _old_rows_equal(self, clone: str, before: TableContent) -> bool:
        """Compare where the rows are that the batch left alone: neither way writes them again."""
        old = F.col(OFFSET) <= before.position.offset
        ours, theirs = (
            sorted(_places(store.read(self._session, at).where(old)).collect())
            for at in (self._path, clone)
        )
        return ours == theirs

    def _differs(
        self, before: TableContent, made: Committed, what: list[str], clone: str
    ) -> CdcError:
        table = before.schema.table
        first, last = before.position.offset + 1, made.position.offset
        return CdcError(
            ErrorKind.TABLE_STOPPED,
            f"job.cross_check: the driver and Spark differ in the {' and the '.join(what)} that "
            f"the events at offsets {first} to {last} make",
            detail=f"version {made.version} of {self._path} is the driver's, {clone} is Spark's",
            remedy="report it with both tables; then set job.local_events: 0 and run wal2lake "
            f"replay {table}",
        )


def _places(rows: DataFrame) -> DataFrame:
    """Return one row per data file that says which of its rows are there, in little space."""
    number = F.col("_metadata.row_index")
    return rows.groupBy(F.col("_metadata.file_name").alias("file")).agg(
        F.count("*"), F.sum(number), F.bit_xor(F.xxhash64(number))
    )


def _unless(same: bool, name: str) -> list[str]:
    return [] if same else [name]


def cross_check(
    session: SparkSession, path: str, table: TableId, context: ApplyContext
) -> CrossCheck | None:
    """Return the check of the table at ``path``; None if none is configured."""
    if context.driver is None or not context.policy.cross_check:
        return None
    return CrossCheck(session, path, context, context.driver.check_directory / str(table))
