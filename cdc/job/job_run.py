"""Runs the job under one configuration: it lands, applies, and watches source and topics."""

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.recovery import Recovery
from cdc.apply.rounds.rounds import Rounds
from cdc.capture.source_watch import SourceWatch
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.errors import CdcError, ErrorKind
from cdc.job.activity import Activity
from cdc.job.health_watch import JobFacts
from cdc.job.pace_report import PaceReport
from cdc.kafka.quiet_stream import QuietStream
from cdc.kafka.range_reader import RangeReader
from cdc.lake.records import epochs
from cdc.land.query import Lander
from cdc.observe.defects import error_text
from cdc.operations.automatic import read_first_rows, read_lost
from cdc.operations.desk.context import JobContext
from cdc.operations.retention import Retention


@dataclass(frozen=True, slots=True)
class LandingQuery:
    """Holds the running landing query, and raises the error that ended it."""

    lander: Lander
    query: StreamingQuery

    def refuse_ended(self) -> None:
        """Raise the error that ended the query, if it has ended."""
        if not self.query.isActive:
            raise self.lander.refused or _ended(self.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """Holds the parts of a run (cdc/job/compose_run.py); ``topics`` are the ones it lands."""

    context: JobContext
    topics: list[str]
    lander: Lander
    quiet: QuietStream
    reader: RangeReader
    watch: SourceWatch
    retention: Retention
    tables: AppliedTables
    rounds: Rounds
    recovery: Recovery
    derived: DerivedTables
    pace: PaceReport

    def catch_up(self, step: Callable[[], None]) -> None:
        """Check that the source is still the same, then replay tables behind the last cut.

        ``step`` is called after each replayed batch.
        """
        self.watch.look(self.context.last_cut().lsn)
        self.recovery.catch_up(step)

    @contextmanager
    def landing(self) -> Iterator[LandingQuery]:
        """Land events while the block lasts."""
        query = self.lander.start(
            self.topics,
            broker=self.context.pipeline.endpoints.kafka,
            checkpoint=str(_fresh_checkpoint(self.context.config.state_dir)),
        )
        try:
            yield LandingQuery(self.lander, query)
        finally:
            self.lander.stop()

    def read_missing(self) -> None:
        """Request that tables are read: without first rows, or lost, where that is configured."""
        read_first_rows(self.context.config, self.tables.by_topic.values())
        epoch = epochs.number(self.context.log.epoch)
        read_lost(self.context.config, self.tables.by_topic.values(), epoch=epoch)

    def apply(
        self, landing: LandingQuery, until: Callable[[], bool], set_alarm: Callable[[str], None]
    ) -> None:
        """Run rounds until ``until`` returns true; raise the error that ended the landing query.

        ``set_alarm`` is called after each round with what blocks publishing, empty for nothing.
        """

        def is_over() -> bool:
            if until():
                return True
            landing.refuse_ended()
            return False

        def between() -> None:
            set_alarm(self.rounds.alarm)
            self.recovery.resume()
            self.retention.look()
            self.pace.look()

        self.rounds.run(is_over, between)

    def facts(self, work: Activity) -> JobFacts:
        """Return what the health watch needs to know; the watch calls it in its own thread."""
        return JobFacts(
            landed=self.lander.position.landing,
            turns=self.rounds.turns,
            working=work.is_going_on(),
            alarm=self.rounds.alarm,
            merging=self.tables.merging,
        )

    def close(self) -> None:
        """Give up the threads of the rounds and the connections to source and Kafka."""
        self.rounds.close()
        self.derived.close()
        self.context.factory.close()
        self.watch.close()
        self.quiet.close()
        self.reader.close()


def _ended(query: StreamingQuery) -> CdcError:
    error = query.exception()
    return CdcError(
        ErrorKind.INTERNAL,
        "the landing query ended",
        detail=error_text(error) if error else "",
        remedy="see the job's log file; a restarted job continues where landing ended",
    )


def _fresh_checkpoint(state_dir: Path) -> Path:
    """Create and return a checkpoint directory for this run; remove those of earlier runs."""
    root = state_dir / "checkpoints"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / uuid.uuid4().hex
    folder.mkdir(parents=True)
    return folder
