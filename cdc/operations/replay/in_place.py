"""A table of the running job is rebuilt from the log or from Kafka, while all others go on.

It is made beside the live one, which follows meanwhile; then that one waits, what is left of the
log is applied, the two are compared, and the new one takes its place in one commit.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from cdc.apply.difference.likeness import Likeness, likeness
from cdc.apply.table.applied_table import AppliedTable
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import aside_path, broken_path, ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.lake.table.removal import remove
from cdc.lake.table.swap import swap
from cdc.operations.desk.context import JobContext, Kept
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.replay.inputs import from_kafka, from_log, place_of, rebuilt_from_kafka
from cdc.operations.replay.rebuild import bring, rebuilt
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId

KAFKA: Final = "kafka"


def handler(context: JobContext) -> Handler:
    """The handler of ``replay`` and ``rebuild``; option: from (log or kafka)."""

    def run(operation: Operation, reporter: Reporter) -> None:
        aside = aside_path(context.config, operation.id)
        reporter.tell(tables=len(operation.tables))
        try:
            for number, name in enumerate(reporter.left(operation.tables)):
                folder = f"{aside}/{number}"
                remove(context.spark, folder)
                reporter.tell(table=name)
                task = Task(context, TableId.parse(name), folder, operation, reporter)
                reporter.done(task.run())
        finally:
            remove(context.spark, aside)

    return run


@dataclass(frozen=True, slots=True)
class Task:
    """One table; what is under way lies in ``folder``."""

    context: JobContext
    table: TableId
    folder: str
    operation: Operation
    reporter: Reporter

    def run(self) -> TableResult:
        """Rebuild and replace it; raises what keeps it from being made, and changes nothing."""
        started, row = time.monotonic(), self._newest_cut()
        made, kept = self._made(row)
        with self.context.flagged(self.table, at_once=False) as live:
            self.reporter.tell(phase="waiting for the table to rest")
            self.context.frozen(self.table, self.reporter)
            self._catch_up(kept, made, live)
            found, notes = self._compared(kept, made, live)
            self.reporter.point()
            self.reporter.tell(phase="replacing")
            notes += self._swapped(kept, made, live)
        return TableResult(
            table=str(self.table),
            rows_read=made.position.rows_applied,
            added=found.added if found else 0,
            changed=found.changed if found else 0,
            swept=found.swept if found else 0,
            refused=made.position.refused,
            cut_before=row.cut,
            seconds=time.monotonic() - started,
            note="; ".join(notes),
        )

    def _newest_cut(self) -> LedgerRow:
        row = Ledger(ledger_path(self.context.config)).last()
        if row is None:
            raise CdcError(
                ErrorKind.CONFLICT,
                "nothing is published yet, so nothing can be rebuilt",
                remedy="wait for the first cut: wal2lake status",
            )
        return row

    def _made(self, row: LedgerRow) -> tuple[AppliedTable, Kept]:
        """The table beside the live one, as of a cut."""
        kept, place = self.context.kept(), place_of(row, self.table)
        self.reporter.tell(phase=f"applying the {self._marker}")
        known = self.context.live(self.table).schema
        # All of them: what was read is true at its place, also where the job died before the merge.
        readings = self.context.readings.of(str(self.table))
        path, tell = f"{self.folder}/table", self._tell
        if self._marker != KAFKA:
            source = from_log(kept, self.table, place, readings=readings, known=known)
            begin = partial(rebuilt, upto=place.upto, epoch=place.epoch)
            made = begin(kept.session, source, self.table, path, point=self._point, tell=tell)
            return made, kept
        # What cannot be applied alone is no refusal of the live table's.
        alone = replace(kept, quarantine=Quarantine(f"{self.folder}/quarantine"))
        take = partial(from_kafka, folder=self.folder, readings=readings, known=known)
        topics = take(alone, self.context.endpoints.kafka, self.table, place)
        return rebuilt_from_kafka(
            alone, topics, self.table, path, point=self._point, tell=tell
        ), kept

    def _tell(self, rows: int) -> None:
        self.reporter.tell(rows=rows)

    def _point(self) -> None:
        self.reporter.point()

    @property
    def _marker(self) -> str:
        return self.operation.options.get("from", "log")

    def _catch_up(self, kept: Kept, made: AppliedTable, live: AppliedTable) -> None:
        """To where the live table rests; where that one is stopped, to the newest cut."""
        newest = place_of(self._newest_cut(), self.table)
        again = from_log(kept, self.table, newest, readings=(), known=None)
        upto, notes = newest.upto, list(again.notes)
        if not live.stopped:
            upto = live.position.offset
            notes = [note for note in notes if note.id <= live.position.note]
        if upto > made.position.offset or made.pending(notes):
            self.reporter.tell(phase="applying what came meanwhile")
            bring(made, replace(again, notes=notes), upto=upto, point=self._point)

    def _compared(
        self, kept: Kept, made: AppliedTable, live: AppliedTable
    ) -> tuple[Likeness | None, list[str]]:
        """How the live table differs, and that in words; None where it cannot be told."""
        self.reporter.tell(phase="comparing")
        if live.stopped:
            return None, [f"the live table had stopped at offset {live.position.offset}"]
        session = kept.session
        try:
            found = likeness(
                store.read(session, made.path), store.read(session, live.path), made.schema
            )
        except (PySparkException, Py4JJavaError):
            return None, ["the live table could not be read"]
        return found, ["it was equal" if found.equal else f"it was not equal: {found.words}"]

    def _swapped(self, kept: Kept, made: AppliedTable, live: AppliedTable) -> list[str]:
        position = replace(
            made.position,
            offset=made.position.offset if live.stopped else live.position.offset,
            refused=self.context.quarantine.open_count(str(self.table)),
        )
        self.reporter.refuse_ended()
        reach(Failpoint.BEFORE_REPLAY_SWAP)
        note = swap(
            kept.session,
            made.path,
            live.path,
            schema=made.schema,
            position=position,
            structure=made.structure,
            broken=broken_path(self.context.config, self.operation.id, self.table),
            going_on=self.reporter.refuse_ended,
        )
        reach(Failpoint.AFTER_REPLAY_SWAP)
        live.become(made.schema, made.structure, position)
        return [note] if note else []
