"""Makes an image of a table: a replay that equals the table at a cut, kept whole.

With an image, the log before it is not needed any more (cdc/lake/records/expiry.py). The source is
not read, and the table goes on meanwhile.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import ledger_path, reading_path
from cdc.lake.records.expiry import base_at
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.readings import Reading, readings_at
from cdc.lake.table.positions import open_table
from cdc.lake.table.removal import remove
from cdc.operations.desk.context import JobContext, RebuildContext
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.each_table import each_table
from cdc.operations.replay.inputs import from_log
from cdc.operations.replay.material import Hooks, end_at_cut
from cdc.operations.replay.rebuild import rebuild_table
from cdc.operations.replay.to_path import compare_with_cut
from cdc.state.operation import TableResult
from cdc.tables import TableId


def handler(job: JobContext) -> Handler:
    """Return the handler of ``image``, an operation that the job requests itself."""
    return each_table(
        lambda table, operation, reporter: Task(job, table, operation.id, reporter).run()
    )


@dataclass(frozen=True, slots=True)
class Task:
    """Makes the image of one table; ``finish`` is called with it before it is recorded."""

    job: JobContext
    table: TableId
    operation: str
    reporter: Reporter
    finish: Callable[[SparkSession, AppliedTable], None] = lambda _session, _image: None

    def run(self) -> TableResult:
        """Make the image, and remove readings that no cut needs any more.

        Raises DIFFERENT where the rebuilt table does not equal the lake's.
        """
        started, row = time.monotonic(), self._newest_cut()
        number = self.job.readings.next_number()
        path = reading_path(self.job.config, self.table, number)
        remove(self.job.spark, path)  # an interrupted operation may have left something
        try:
            image, context = self._rebuilt(row, path)
            self._refuse_different(context, image, row)
            self.finish(context.session, image)
        except CdcError:
            remove(self.job.spark, path)
            raise
        self._record(image, row, number)
        self.forget_older()
        return TableResult(
            table=str(self.table),
            rows_read=image.position.rows_applied,
            cut_before=row.cut,
            seconds=time.monotonic() - started,
            note=f"an image as of cut {row.cut}: the log before it is no longer needed",
        )

    def _newest_cut(self) -> LedgerRow:
        row = self._ledger().last()
        assert row is not None  # noqa: S101 - images are requested of tables in a cut only
        return row

    def _ledger(self) -> Ledger:
        return Ledger(ledger_path(self.job.config))

    def _rebuilt(self, row: LedgerRow, path: str) -> tuple[AppliedTable, RebuildContext]:
        context, end = self.job.rebuild_context(), end_at_cut(row, self.table)
        self.reporter.tell(phase="applying the log")
        readings = readings_at(self.job.readings.of(str(self.table)), row, str(self.table))
        known = self.job.live(self.table).schema
        material = from_log(context, self.table, end, readings=readings, known=known)
        image = rebuild_table(
            context.session,
            material,
            self.table,
            path,
            upto=end.upto,
            epoch=end.epoch,
            hooks=Hooks(self.reporter.safe_point, lambda rows: self.reporter.tell(rows=rows)),
        )
        return image, context

    def _refuse_different(
        self, context: RebuildContext, image: AppliedTable, row: LedgerRow
    ) -> None:
        """Raise DIFFERENT where the rebuilt table does not equal the lake's at the cut."""
        self.reporter.tell(phase="comparing")
        likeness, why_not = compare_with_cut(context.session, image, row)
        if likeness is not None and likeness.equal:
            return
        how = "differs from" if likeness else "cannot be compared with"
        raise CdcError(
            ErrorKind.DIFFERENT,
            f"{self.table} rebuilt from the log {how} the lake's table at cut {row.cut}",
            detail=likeness.words if likeness else why_not,
            remedy=f"wal2lake verify {self.table}; wal2lake replay {self.table} --into PATH",
        )

    def _record(self, image: AppliedTable, row: LedgerRow, number: int) -> None:
        opened = open_table(image.path)
        assert opened is not None  # noqa: S101 - it was just written
        reading = Reading(
            number=number,
            table=str(self.table),
            whole=True,
            image=True,
            path=image.path,
            version=opened.version(),
            position=image.position,
            lsn=row.lsn or 0,
            cut=row.cut,
            landing=row.landing_floor,
            operation=self.operation,
            made_at=datetime.now(UTC),
        )
        reach(Failpoint.BEFORE_IMAGE_RECORD)
        self.job.readings.add(reading)
        reach(Failpoint.AFTER_IMAGE_RECORD)

    def forget_older(self) -> None:
        """Remove readings older than the one with which a replay to the oldest cut begins.

        Their files go first: nothing reads them any more, and as long as the index names them, an
        interrupted removal is repeated.
        """
        index, first = self.job.readings, self._ledger().first()
        entry = first.entry(str(self.table)) if first else None
        own = index.of(str(self.table))
        base = base_at(first, entry, own) if first and entry else None
        older = [reading for reading in own if base is not None and reading.number < base.number]
        if not older or base is None:
            return
        reach(Failpoint.BEFORE_READING_EXPIRY)
        for reading in older:
            remove(self.job.spark, reading.path)
        index.forget(str(self.table), before=base.number)
        reach(Failpoint.AFTER_READING_EXPIRY)
