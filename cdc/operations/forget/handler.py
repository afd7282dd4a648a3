"""Leaves nothing of a table's deleted rows in lake and topic: see ``Task.run``.

The source is not asked what was deleted. Whatever the newest cut does not show is forgotten.
"""

import time
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.end_segment import end_segment
from cdc.lake.layout import log_path, table_path
from cdc.lake.records.readings import Reading
from cdc.lake.session import scratch_folder
from cdc.lake.table.positions import landed_position
from cdc.lake.upkeep.erasure import delete_older
from cdc.lake.upkeep.held import held
from cdc.lake.upkeep.without_deleted import rewrite
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.each_table import each_table
from cdc.operations.forget.made_anew import MadeAnew, derived_tables
from cdc.operations.forget.past import give_up_cuts, remove_leftovers
from cdc.operations.forget.refusals import refuse, refuse_unsettled
from cdc.operations.forget.scratch import clear_scratch
from cdc.operations.forget.waits import await_landing, await_no_hold, newest_cut
from cdc.operations.replay import image
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId

COMMAND: Final = "forget"


def handler(job: JobContext) -> Handler:
    """Return the handler of ``forget``. Run again after a crash, it does all steps again."""

    def run_one(table: TableId, operation: Operation, reporter: Reporter) -> TableResult:
        reporter.tell(phase="waiting for the cut")
        return Task(job, table, operation.id, reporter).run()

    return each_table(run_one)


@dataclass(frozen=True, slots=True)
class Task:
    """Forgets one table's deleted rows."""

    job: JobContext
    table: TableId
    operation: str
    reporter: Reporter

    def run(self) -> TableResult:
        """Forget what the table does not have at a cut that begins after the request.

        First an image takes the place of everything that a replay would need of the past. Then go
        older cuts and readings, the events in log and topic, settled events of the quarantine, and
        at last the deleted rows and older versions of the table and of what is derived from it.
        """
        started = time.monotonic()
        refuse(self.job, self.table)
        self._await_cut()
        made = self._imaged()
        self._forget_past(made)
        self._forget_events(made)
        self.job.quarantine.forget(str(self.table))
        cut, since = self._forget_rows()
        self.reporter.tell(phase="deleting intermediate results")
        left = clear_scratch(self.job.spark, scratch_folder(self.job.config), since)
        return TableResult(
            table=str(self.table),
            rows_read=made.position.rows_applied,
            cut_before=made.cut,
            cut_after=cut,
            seconds=time.monotonic() - started,
            note="; ".join([f"the past before cut {cut} is forgotten", *_scratch_note(left)]),
        )

    def _await_cut(self) -> None:
        """Wait for a cut that has everything committed so far, and nothing else of its landings.

        A cut may end within a landing, and of that nothing could be deleted.
        """
        self.job.await_streaming(self.table, self.reporter)
        landed = landed_position(log_path(self.job.config))
        while landed is not None and newest_cut(self.job).landing_floor < landed.landing:
            self.job.await_streaming(self.table, self.reporter)
        refuse_unsettled(newest_cut(self.job), self.table)

    def _imaged(self) -> Reading:
        with held(self.job.config.lake.path, by_job=True):
            self._image.run()
        return self.job.readings.of(str(self.table))[-1]

    @property
    def _image(self) -> image.Task:
        return image.Task(self.job, self.table, self.operation, self.reporter, _without_deleted)

    def _forget_past(self, made: Reading) -> None:
        """Give up what cuts before the image need: themselves, and older readings."""
        self.reporter.tell(phase="giving up older cuts")
        give_up_cuts(self.job, made.cut, self.reporter)
        self._image.forget_older()
        remove_leftovers(self.job, made)

    def _forget_events(self, made: Reading) -> None:
        """Delete the table's events up to the image from the log, and all landed ones from Kafka.

        The log says first that it continues after them: else a start would miss them in Kafka.
        """
        self.reporter.tell(phase="deleting events")
        config, kafka = self.job.config, self.job.pipeline.endpoints.kafka
        topic, lander, path = self.job.topic(self.table), self.job.lander, log_path(config)
        first = end_segment(kafka, topic, f"{config.name}.forget")
        await_landing(self.job, self.reporter, lambda: lander.read().get(topic, 0) >= first)
        place = {topic: (made.landing, made.position.offset)}
        forgotten = lander.after_landing(lambda: lander.forget(place, {topic: first - 1}))
        await_landing(self.job, self.reporter, forgotten.done)
        since = forgotten.result()
        await_no_hold(self.job, self.reporter, since)
        cleaned = lander.after_landing(lambda: delete_older(path, since))
        await_landing(self.job, self.reporter, cleaned.done)
        cleaned.result()
        empty_topic(kafka, topic, before=first)

    def _forget_rows(self) -> tuple[int, float]:
        """Rewrite the live table, and delete its older versions once a cut has the new one.

        Returns that cut, and when the new version was written.
        """
        self.reporter.tell(phase="rewriting the table")
        session, path = self.job.spark.newSession(), table_path(self.job.config, self.table)
        with self.job.flagged(self.table, at_once=False) as live:
            self.job.freeze(self.table, self.reporter)
            # A file that is being made of others may hold rows of before: it is to be older.
            self.job.factory.beside(lambda: None)
            since = rewrite(session, path, live.position.metadata())
            self.job.factory.drop_caches(str(self.table))
        self.reporter.tell(phase="deleting old versions")
        cut = self.job.await_streaming(self.table, self.reporter)
        derived = MadeAnew(self.job, derived_tables(self.job, self.table), self.reporter)
        begins = derived.make(cut)  # then their steps need no older version of the table
        cut = newest_cut(self.job).cut
        give_up_cuts(self.job, cut, self.reporter)
        await_no_hold(self.job, self.reporter, since)
        self.job.factory.beside(lambda: delete_older(path, since))
        derived.delete_older(begins)
        return cut, since


def _without_deleted(session: SparkSession, made: AppliedTable) -> None:
    delete_older(made.path, rewrite(session, made.path, made.position.metadata()))


def _scratch_note(left: int) -> list[str]:
    """Return what to do about files that Spark still needs, empty without any."""
    files = f"{left} file{'' if left == 1 else 's'} of intermediate results"
    return [f"{files} may have more, until wal2lake down and up"] if left else []
