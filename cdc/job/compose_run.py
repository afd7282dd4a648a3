"""Composes one run of the job under one configuration: everything is given to constructors."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from cdc.apply.epoch_log import EpochLog
from cdc.apply.rounds import recovery
from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.cut_finder import CutFinder
from cdc.apply.rounds.cut_requests import CutRequests
from cdc.apply.rounds.first_snapshot import FirstSnapshot
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.rounds.log_slice import Slice
from cdc.apply.rounds.publisher import Publisher
from cdc.apply.rounds.recovery import Recovery
from cdc.apply.rounds.rounds import RoundChecks, Rounds, stuck_transactions
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.capture.continuity import stored_lsn
from cdc.capture.source_watch import SourceWatch
from cdc.derive.engine.large_queries import large_queries
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.keep.histories import LoggedTables
from cdc.derive.keep.open_derived import open_derived
from cdc.derive.log.topic_rows import Recent
from cdc.job.job_run import JobRun
from cdc.job.pace_report import PaceReport
from cdc.job.run_inputs import RunInputs, gather_inputs
from cdc.kafka.offsets import end_offsets
from cdc.kafka.quiet_stream import QuietStream
from cdc.kafka.range_reader import RangeReader
from cdc.kafka.topic_watch import TopicWatch
from cdc.lake.layout import log_path, readings_path
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.records.readings import Readings
from cdc.land.inbox import Inbox
from cdc.land.kafka_rows import read_rows
from cdc.land.query import Lander, LandingHooks, Offsets, Rest
from cdc.land.small_batches import SmallBatches
from cdc.observe.recent_freshness import RecentFreshness
from cdc.observe.stage_times import Stage
from cdc.operations.desk.context import JobContext
from cdc.operations.retention import Retention
from cdc.state import requests
from cdc.state.job_state import JobStateFile
from cdc.state.pipeline import Pipeline
from cdc.state.request_reader import RequestReader


def compose_run(pipeline: Pipeline, spark: SparkSession, state_file: JobStateFile) -> JobRun:
    """Return a run that has not begun; every opened table counts as a step in the state file.

    Raises CHAIN_BROKEN where log, source or topics do not belong together.
    """
    return _Composer(pipeline, spark, gather_inputs(pipeline, spark, state_file.step)).run()


@dataclass(frozen=True, slots=True)
class _Composer:
    """Puts the parts of one run together, in the order in which they need each other."""

    pipeline: Pipeline
    spark: SparkSession
    inputs: RunInputs

    def run(self) -> JobRun:
        """Return the run, made of all its parts."""
        inputs, config = self.inputs, self.pipeline.config
        retention = Retention(config)
        watch, last = self._watch(), self._last_cut()
        inbox = Inbox(landings=recovery.unpublished_landings(log_path(config), last))
        freezer = TableFreezer(inputs.tables)
        tables = AppliedTables(
            inputs.tables, notes_topic=inputs.topics.notes, threads=config.job.merge_threads
        )
        recent = RecentFreshness(time.monotonic)
        derived = self._derived()
        publisher = Publisher(
            inputs.ledger,
            last,
            topics=inputs.topics,
            tables=tables,
            inbox=inbox,
            freezer=freezer,
            wal_end=watch.position,
            recent=recent,
            stages=inputs.stages,
            derive=partial(_derive, derived),
        )
        quiet = self._quiet()
        reader = RangeReader(self.pipeline.endpoints.kafka, group=f"{self.pipeline.name}.landing")
        hooks = self._hooks(inbox, reader, retention, partial(_rest, quiet, publisher))
        lander = self._lander(hooks)
        finder = self._finder(self._first(lander, last), tables, inbox)
        return JobRun(
            context=self._context(freezer, publisher, lander),
            topics=inputs.landing_topics,
            lander=lander,
            quiet=quiet,
            reader=reader,
            watch=watch,
            retention=retention,
            tables=tables,
            rounds=self._rounds(finder, tables, publisher, inbox, watch),
            recovery=self._recovery(tables, freezer, publisher),
            derived=derived,
            pace=PaceReport(
                config.state_dir,
                config.job.freshness_seconds,
                recent=recent,
                stages=inputs.stages,
                tables=inputs.tables.values(),
            ),
        )

    def _watch(self) -> SourceWatch:
        name, endpoints = self.pipeline.name, self.pipeline.endpoints
        ask_stored = partial(stored_lsn, endpoints.connect, name)
        return SourceWatch(endpoints.source_url, name, self.inputs.source.origin, ask_stored)

    def _last_cut(self) -> LastCut:
        inputs = self.inputs
        return recovery.last_cut_at_start(
            log_path(self.pipeline.config),
            inputs.ledger.last(),
            inputs.epoch,
            topics=inputs.topics,
            tables=inputs.tables,
        )

    def _derived(self) -> DerivedTables:
        captured = {source.table for source in self.inputs.source.tables}
        last = self.inputs.ledger.last()
        log = LoggedTables(
            path=log_path(self.pipeline.config),
            prefix=self.pipeline.name,
            placeholder=self.inputs.factory.placeholder,
            schemas_of=self.inputs.registry.schemas,
            readings_of=Readings(readings_path(self.pipeline.config)).of,
        )
        before = last.derived if last else ()
        large = large_queries(self.pipeline.config, self.spark)
        return open_derived(self.pipeline.config, captured, before, log, large)

    def _quiet(self) -> QuietStream:
        return QuietStream(
            self.pipeline.endpoints.kafka,
            prefix=self.pipeline.name,
            markers=self.inputs.topics.markers,
            schemas_of=self.inputs.registry.schemas,
        )

    def _lander(self, hooks: LandingHooks) -> Lander:
        """Continue after what has landed."""
        return Lander(
            self.spark,
            log_path(self.pipeline.config),
            self.inputs.landed,
            self.pipeline.config.job,
            notes_topic=self.inputs.topics.notes,
            hooks=hooks,
        )

    def _hooks(
        self, inbox: Inbox, reader: RangeReader, retention: Retention, rest: Rest
    ) -> LandingHooks:
        """Return what a landing does beside its commit; no topic may have been replaced."""
        inputs = self.inputs
        ids = {topic: inputs.landed.topic_ids[topic] for topic in inputs.landing_topics}
        return LandingHooks(
            landed=inbox.add,
            look=TopicWatch(self.pipeline.endpoints.kafka, ids).look,
            read=partial(read_rows, reader),
            expired=retention.expired,
            timed=partial(inputs.stages.timed, Stage.LAND),
            rest=rest,
        )

    def _first(self, lander: Lander, last: LastCut) -> FirstSnapshot:
        topics = self.inputs.landing_topics
        return FirstSnapshot(
            partial(end_offsets, self.pipeline.endpoints.kafka, topics, committed=False),
            lander.read,
            marker_topic=self.inputs.topics.markers,
            applied=last.row.lsn is not None,
        )

    def _finder(self, first: FirstSnapshot, tables: AppliedTables, inbox: Inbox) -> CutFinder:
        return CutFinder(
            self.spark,
            log_path(self.pipeline.config),
            topics=self.inputs.topics,
            tables=tables,
            inbox=inbox,
            first=first,
            schemas_of=self.inputs.registry.schemas,
            stages=self.inputs.stages,
            few=self.pipeline.config.job.local_events,
        )

    def _rounds(
        self,
        finder: CutFinder,
        tables: AppliedTables,
        publisher: Publisher,
        inbox: Inbox,
        watch: SourceWatch,
    ) -> Rounds:
        policy = self.pipeline.config.job
        return Rounds(
            finder,
            tables,
            publisher,
            inbox=inbox,
            requests=CutRequests(RequestReader(requests.directory(self.pipeline.config.state_dir))),
            checks=RoundChecks(
                stuck_transactions(policy.transaction_alarm_seconds),
                source=watch.look,
                idle_source=watch.look_now_and_then,
            ),
            budget=policy.max_events_per_batch,
        )

    def _log(self) -> EpochLog:
        return EpochLog(
            spark=self.spark,
            path=log_path(self.pipeline.config),
            notes_topic=self.inputs.topics.notes,
            schemas_of=self.inputs.registry.schemas,
            budget=self.pipeline.config.job.max_events_per_batch,
            epoch=self.inputs.epoch,
            small=SmallBatches(self.pipeline.config.job.local_events),
        )

    def _recovery(
        self, tables: AppliedTables, freezer: TableFreezer, publisher: Publisher
    ) -> Recovery:
        return Recovery(
            log=self._log(),
            tables=tables,
            freezer=freezer,
            last_cut=lambda: publisher.last,
        )

    def _context(self, freezer: TableFreezer, publisher: Publisher, lander: Lander) -> JobContext:
        inputs = self.inputs
        return JobContext(
            pipeline=self.pipeline,
            spark=self.spark,
            tables=inputs.tables,
            freezer=freezer,
            last_cut=lambda: publisher.last,
            log=self._log(),
            factory=inputs.factory,
            readings=Readings(readings_path(self.pipeline.config)),
            lander=lander,
        )


def _derive(
    derived: DerivedTables, row: LedgerRow, part: Slice, after: Mapping[str, int]
) -> tuple[DerivedEntry, ...]:
    """Bring the derived tables to a cut, with the rows of the log that are in memory."""
    events = part.rows.events if derived.reads_log else None
    return derived.entries(row, None if events is None else Recent(events=events, after=after))


def _rest(
    quiet: QuietStream,
    publisher: Publisher,
    before: Offsets,
    after: Offsets,
    ended: threading.Event,
) -> None:
    """Let heartbeats wait once the stream is in a cut: markers say nothing of the snapshot."""
    if publisher.last.row.lsn is not None:
        quiet.wait(before, after, ended)
