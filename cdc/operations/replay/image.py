"""An image of a table: replayed from what is kept of it, found equal to it, and kept whole.

With it the log before it is not needed any more (cdc/lake/records/expiry.py). The source is not
read, and the table goes on meanwhile.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from cdc.apply.table.applied_table import AppliedTable
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import ledger_path, reading_path
from cdc.lake.records.expiry import base_at
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.readings import Reading, readings_at
from cdc.lake.table.positions import open_table
from cdc.lake.table.removal import remove
from cdc.operations.desk.context import JobContext, Kept
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.replay.inputs import from_log, place_of
from cdc.operations.replay.rebuild import rebuilt
from cdc.operations.replay.to_path import compared
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId


def handler(context: JobContext) -> Handler:
    """The handler of ``image``, which the job asks itself for."""

    def run(operation: Operation, reporter: Reporter) -> None:
        reporter.tell(tables=len(operation.tables))
        for name in reporter.left(operation.tables):
            reporter.tell(table=name)
            reporter.done(_Task(context, TableId.parse(name), operation.id, reporter).run())

    return run


@dataclass(frozen=True, slots=True)
class _Task:
    """One table."""

    context: JobContext
    table: TableId
    operation: str
    reporter: Reporter

    def run(self) -> TableResult:
        """Make the image, and give up what is older than any cut; raises where it is not equal."""
        started, row = time.monotonic(), self._newest_cut()
        number = self.context.readings.next_number()
        path = reading_path(self.context.config, self.table, number)
        remove(self.context.spark, path)  # of one that was interrupted
        try:
            made, kept = self._made(row, path)
            self._refuse_other(kept, made, row)
        except CdcError:
            remove(self.context.spark, path)
            raise
        self._record(made, row, number)
        self._forget_older()
        return TableResult(
            table=str(self.table),
            rows_read=made.position.rows_applied,
            cut_before=row.cut,
            seconds=time.monotonic() - started,
            note=f"an image of it as of cut {row.cut}: the log gives it again from there",
        )

    def _newest_cut(self) -> LedgerRow:
        row = self._ledger().last()
        assert row is not None  # noqa: S101 - it is asked for when a table stands at a cut
        return row

    def _ledger(self) -> Ledger:
        return Ledger(ledger_path(self.context.config))

    def _made(self, row: LedgerRow, path: str) -> tuple[AppliedTable, Kept]:
        kept, place = self.context.kept(), place_of(row, self.table)
        self.reporter.tell(phase="applying the log")
        readings = readings_at(self.context.readings.of(str(self.table)), row, str(self.table))
        known = self.context.live(self.table).schema
        material = from_log(kept, self.table, place, readings=readings, known=known)
        begin = partial(rebuilt, upto=place.upto, epoch=place.epoch)
        point, tell = self.reporter.point, self._tell
        made = begin(kept.session, material, self.table, path, point=point, tell=tell)
        return made, kept

    def _tell(self, rows: int) -> None:
        self.reporter.tell(rows=rows)

    def _refuse_other(self, kept: Kept, made: AppliedTable, row: LedgerRow) -> None:
        """What is not the table at its cut is no image, and nothing is given up."""
        self.reporter.tell(phase="comparing")
        likeness, why_not = compared(kept.session, made, row)
        if likeness is not None and likeness.equal:
            return
        what = "gives another table than" if likeness else "cannot be compared with"
        raise CdcError(
            ErrorKind.DIFFERENT,
            f"the log of {self.table} {what} the one of cut {row.cut}",
            detail=likeness.words if likeness else why_not,
            remedy=f"wal2lake verify {self.table}; wal2lake replay {self.table} --into PATH",
        )

    def _record(self, made: AppliedTable, row: LedgerRow, number: int) -> None:
        version = open_table(made.path)
        assert version is not None  # noqa: S101 - it was just made
        reading = Reading(
            number=number,
            table=str(self.table),
            whole=True,
            image=True,
            path=made.path,
            version=version.version(),
            position=made.position,
            lsn=row.lsn or 0,
            cut=row.cut,
            landing=row.landing_floor,
            operation=self.operation,
            made_at=datetime.now(UTC),
        )
        reach(Failpoint.BEFORE_IMAGE_RECORD)
        self.context.readings.add(reading)
        reach(Failpoint.AFTER_IMAGE_RECORD)

    def _forget_older(self) -> None:
        """Readings before the one that a replay to the oldest cut begins with; their files first.

        Nothing reads them any more, and an index that names them brings the rest about again.
        """
        index, first = self.context.readings, self._ledger().first()
        entry = first.entry(str(self.table)) if first else None
        mine = index.of(str(self.table))
        base = base_at(first, entry, mine) if first and entry else None
        older = [reading for reading in mine if base is not None and reading.number < base.number]
        if not older or base is None:
            return
        reach(Failpoint.BEFORE_READING_EXPIRY)
        for reading in older:
            remove(self.context.spark, reading.path)
        index.forget(str(self.table), before=base.number)
        reach(Failpoint.AFTER_READING_EXPIRY)
