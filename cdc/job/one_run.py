"""One run of the job under one configuration: it lands, applies, and watches source and topics."""

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from cdc.apply.rounds.recovery import Recovery
from cdc.apply.rounds.rounds import Rounds
from cdc.apply.rounds.tables import Tables
from cdc.capture.source_watch import SourceWatch
from cdc.errors import CdcError, ErrorKind
from cdc.job.activity import Work
from cdc.job.health_watch import JobFacts
from cdc.lake.records import epochs
from cdc.land.query import Lander
from cdc.observe.defects import told
from cdc.operations.automatic import read_lost
from cdc.operations.desk.context import JobContext
from cdc.operations.retention import Retention


@dataclass(frozen=True, slots=True)
class LandingQuery:
    """The landing query, and what it says of its end."""

    lander: Lander
    query: StreamingQuery

    def refuse_ended(self) -> None:
        """Raise what ended it, if it has ended."""
        if not self.query.isActive:
            raise self.lander.refused or _ended(self.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The parts of a run (cdc/job/composition.py); ``topics`` are those that it lands."""

    context: JobContext
    topics: list[str]
    lander: Lander
    watch: SourceWatch
    retention: Retention
    tables: Tables
    rounds: Rounds
    recovery: Recovery

    def catch_up(self, step: Callable[[], None]) -> None:
        """Check that the source is the one of before, then replay tables behind the last cut."""
        self.watch.look(self.context.last_cut().lsn)
        self.recovery.catch_up(step)

    @contextmanager
    def landing(self) -> Iterator[LandingQuery]:
        """Land events as long as the block lasts."""
        query = self.lander.start(
            self.topics,
            bootstrap_servers=self.context.endpoints.kafka,
            checkpoint=str(_fresh_checkpoint(self.context.config.state_dir)),
        )
        try:
            yield LandingQuery(self.lander, query)
        finally:
            self.lander.stop()

    def read_lost(self) -> None:
        """Ask for a reading of tables that an epoch stopped, where that is configured."""
        epoch = epochs.number(self.context.epoch)
        read_lost(self.context.config, self.tables.by_topic.values(), epoch=epoch)

    def apply(
        self, landing: LandingQuery, until: Callable[[], bool], hear: Callable[[str], None]
    ) -> None:
        """Run rounds until then; raises what ended the landing query.

        ``hear`` is told what keeps cuts from being published, or nothing, after each round.
        """

        def is_over() -> bool:
            if until():
                return True
            landing.refuse_ended()
            return False

        def between() -> None:
            hear(self.rounds.alarm)
            self.recovery.resume()
            self.retention.look()

        self.rounds.run(is_over, between)

    def facts(self, work: Work) -> JobFacts:
        """Return what the health watch asks of the job; called by a thread of its own."""
        return JobFacts(
            landed=self.lander.position.landing,
            turns=self.rounds.turns,
            working=work.is_going_on(),
            alarm=self.rounds.alarm,
            merging=self.tables.merging,
        )

    def close(self) -> None:
        """Give up the threads of the rounds and the connection to the source."""
        self.rounds.close()
        self.watch.close()


def _ended(query: StreamingQuery) -> CdcError:
    error = query.exception()
    return CdcError(
        ErrorKind.INTERNAL,
        "the landing query ended",
        detail=told(error) if error else "",
        remedy="see the job's log; it goes on from the log's position when it is started again",
    )


def _fresh_checkpoint(state_dir: Path) -> Path:
    """Return a directory of this run alone; those of earlier runs are removed."""
    root = state_dir / "checkpoints"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / uuid.uuid4().hex
    folder.mkdir(parents=True)
    return folder
