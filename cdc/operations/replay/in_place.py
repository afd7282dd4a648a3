"""Rebuilds a table of the running job from the log or from Kafka, while all others go on.

The new table is built beside the live one, which follows meanwhile. Then the live one is frozen,
the rest of the log is applied to the new one, the two are compared, and the new one takes the live
one's place in one commit.
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
from cdc.operations.desk.context import JobContext, RebuildContext
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.replay.inputs import from_kafka, from_log, rebuild_from_kafka
from cdc.operations.replay.material import Hooks, end_at_cut
from cdc.operations.replay.rebuild import rebuild_table, replay_to
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId

KAFKA: Final = "kafka"


def handler(job: JobContext) -> Handler:
    """Return the handler of ``replay`` and ``rebuild``; its option: from (log or kafka)."""

    def run(operation: Operation, reporter: Reporter) -> None:
        aside = aside_path(job.config, operation.id)
        reporter.tell(tables=len(operation.tables))
        try:
            for number, name in enumerate(reporter.remaining(operation.tables)):
                folder = f"{aside}/{number}"
                remove(job.spark, folder)
                reporter.tell(table=name)
                task = Task(job, TableId.parse(name), folder, operation, reporter)
                reporter.done(task.run())
        finally:
            remove(job.spark, aside)

    return run


@dataclass(frozen=True, slots=True)
class Task:
    """Replays one table; unfinished work lies in ``folder``."""

    job: JobContext
    table: TableId
    folder: str
    operation: Operation
    reporter: Reporter

    def run(self) -> TableResult:
        """Rebuild and replace the table.

        Raises CONFLICT before the first cut, and what ``rebuild_table`` raises; then the live
        table stays as it is.
        """
        started, row = time.monotonic(), self._newest_cut()
        rebuilt, context = self._rebuilt(row)
        with self.job.flagged(self.table, at_once=False) as live:
            self.reporter.tell(phase="freezing the table")
            self.job.freeze(self.table, self.reporter)
            self._catch_up(context, rebuilt, live)
            difference, notes = self._compared(context, rebuilt, live)
            self.reporter.safe_point()
            self.reporter.tell(phase="replacing")
            notes += self._swapped(context, rebuilt, live)
        return TableResult(
            table=str(self.table),
            rows_read=rebuilt.position.rows_applied,
            added=difference.added if difference else 0,
            changed=difference.changed if difference else 0,
            swept=difference.swept if difference else 0,
            refused=rebuilt.position.refused,
            cut_before=row.cut,
            seconds=time.monotonic() - started,
            note="; ".join(notes),
        )

    def _newest_cut(self) -> LedgerRow:
        row = Ledger(ledger_path(self.job.config)).last()
        if row is None:
            raise CdcError(
                ErrorKind.CONFLICT,
                "nothing is published yet, so nothing can be rebuilt",
                remedy="wait for the first cut: wal2lake status",
            )
        return row

    def _rebuilt(self, row: LedgerRow) -> tuple[AppliedTable, RebuildContext]:
        """Rebuild the table beside the live one, as of a cut."""
        context, end = self.job.rebuild_context(), end_at_cut(row, self.table)
        self.reporter.tell(phase=f"applying the {self._events_from}")
        known = self.job.live(self.table).schema
        # All readings count: each is true at its offset, even if the job died before the merge.
        readings = self.job.readings.of(str(self.table))
        path = f"{self.folder}/table"
        if self._events_from != KAFKA:
            material = from_log(context, self.table, end, readings=readings, known=known)
            from_material = partial(rebuild_table, upto=end.upto, epoch=end.epoch)
            rebuilt = from_material(context.session, material, self.table, path, hooks=self._hooks)
            return rebuilt, context
        # An event that cannot be applied without the log is no refused event of the live table.
        quarantine = Quarantine(f"{self.folder}/quarantine")
        apart = replace(context, factory=context.factory.with_quarantine(quarantine))
        copy = partial(from_kafka, folder=self.folder, readings=readings, known=known)
        topics = copy(apart, self.job.pipeline.endpoints.kafka, self.table, end)
        return rebuild_from_kafka(apart, topics, self.table, path, self._hooks), context

    @property
    def _hooks(self) -> Hooks:
        return Hooks(self.reporter.safe_point, lambda rows: self.reporter.tell(rows=rows))

    @property
    def _events_from(self) -> str:
        return self.operation.options.get("from", "log")

    def _catch_up(self, context: RebuildContext, rebuilt: AppliedTable, live: AppliedTable) -> None:
        """Bring the rebuilt table to the live one's position, or the newest cut if that stopped."""
        newest = end_at_cut(self._newest_cut(), self.table)
        material = from_log(context, self.table, newest, readings=(), known=None)
        upto = newest.upto
        if not live.stopped:
            upto, material = live.position.offset, material.with_notes_to(live.position.note)
        if upto > rebuilt.position.offset or rebuilt.pending_notes(material.recorded.notes):
            self.reporter.tell(phase="catching up")
            replay_to(rebuilt, material, upto=upto, hooks=Hooks(self.reporter.safe_point))

    def _compared(
        self, context: RebuildContext, rebuilt: AppliedTable, live: AppliedTable
    ) -> tuple[Likeness | None, list[str]]:
        """Return how the live table differs, as figures (None where unknown) and in words."""
        self.reporter.tell(phase="comparing")
        if live.stopped:
            return None, [f"the live table had stopped at offset {live.position.offset}"]
        session = context.session
        try:
            difference = likeness(
                store.read(session, rebuilt.path), store.read(session, live.path), rebuilt.schema
            )
        except (PySparkException, Py4JJavaError):
            return None, ["the live table could not be read"]
        if difference.equal:
            return difference, ["it was equal"]
        return difference, [f"it was not equal: {difference.words}"]

    def _swapped(
        self, context: RebuildContext, rebuilt: AppliedTable, live: AppliedTable
    ) -> list[str]:
        """Replace the live table by the rebuilt one, and return notes for the result."""
        position = replace(
            rebuilt.position,
            offset=rebuilt.position.offset if live.stopped else live.position.offset,
            refused=self.job.quarantine.open_count(str(self.table)),
        )
        self.reporter.refuse_ended()
        reach(Failpoint.BEFORE_REPLAY_SWAP)
        note = swap(
            context.session,
            rebuilt.path,
            live.path,
            schema=rebuilt.schema,
            position=position,
            structure=rebuilt.structure,
            broken=broken_path(self.job.config, self.operation.id, self.table),
            going_on=self.reporter.refuse_ended,
        )
        reach(Failpoint.AFTER_REPLAY_SWAP)
        live.replace_content(replace(rebuilt.content, position=position))
        return [note] if note else []
