"""One run of the job under one configuration: it lands, applies, and watches source and topics."""

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdc.apply.rounds import recovery
from cdc.apply.rounds.first_snapshot import FirstSnapshot
from cdc.apply.rounds.rounds import Applier
from cdc.capture.continuity import markers, stored
from cdc.capture.source_watch import SourceWatch
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.job.activity import Work
from cdc.job.assembly import Sources, sources, workshop
from cdc.job.health_watch import JobFacts
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topic_watch import TopicWatch
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.records import epochs
from cdc.lake.table.positions import LandedPosition
from cdc.land.query import Lander
from cdc.observe.defects import told
from cdc.operations.automatic import read_lost
from cdc.operations.desk.context import Workshop
from cdc.operations.retention import Retention
from cdc.state.endpoints import Endpoints
from cdc.state.job_state import Told
from cdc.tables import STRUCTURE


@dataclass(frozen=True, slots=True)
class LandingQuery:
    """The landing query, and what it says of its end."""

    lander: Lander
    query: StreamingQuery

    def refuse_ended(self) -> None:
        """Raise what ended it, if it has ended."""
        if not self.query.isActive:
            raise self.lander.refused or _ended(self.query)


@dataclass(frozen=True, slots=True)
class Running:
    """The parts of a run; ``topics`` are those that it lands."""

    shop: Workshop
    topics: list[str]
    lander: Lander
    watch: SourceWatch
    retention: Retention

    @property
    def applier(self) -> Applier:
        """The rounds."""
        return self.shop.applier

    def catch_up(self, step: Callable[[], None]) -> None:
        """Look whether the source is the one of before, and make good what the lake lacks."""
        shop, applier = self.shop, self.applier
        self.watch.look(applier.base.lsn or 0)
        recovery.catch_up(shop.spark, log_path(shop.config), applier, shop.epoch, step)

    @contextmanager
    def landing(self) -> Iterator[LandingQuery]:
        """Events land inside the block."""
        query = self.lander.start(
            self.topics,
            bootstrap_servers=self.shop.endpoints.kafka,
            checkpoint=str(_fresh_checkpoint(self.shop.config.state_dir)),
        )
        try:
            yield LandingQuery(self.lander, query)
        finally:
            self.lander.stop()

    def read_lost(self) -> None:
        """Ask for a reading of tables that an epoch stopped, where that is configured."""
        epoch = epochs.number(self.shop.epoch)
        read_lost(self.shop.config, self.applier.tables.values(), epoch=epoch)

    def between(self) -> None:
        """What is done between two rounds: tables that came back, and what is given up."""
        shop = self.shop
        recovery.resume(shop.spark, log_path(shop.config), self.applier, shop.epoch)
        self.retention.look()

    def facts(self, work: Work) -> JobFacts:
        """What the watch is told; called by a thread of its own."""
        return JobFacts(
            landed=self.lander.position.landing,
            turns=self.applier.turns,
            working=work.is_going_on(),
            alarm=self.applier.alarm,
            merging=tuple(self.applier.merging),
        )

    def close(self) -> None:
        """Let go of the threads of the rounds and of the source."""
        self.applier.close()
        self.watch.close()


def assembled(config: Config, spark: SparkSession, endpoints: Endpoints, told: Told) -> Running:
    """A run that has not begun; raises what the log, the source or the topics are refused for."""
    found = sources(config, endpoints)
    topics = _topics(config, found)
    landed = recovery.open_log(spark, config, endpoints.kafka, topics, found.origin)
    asked = partial(stored, endpoints.connect, config.name)
    watch = SourceWatch(endpoints.source_url, config.name, found.origin, asked)
    epoch = epochs.last(epochs_path(config))
    first = _first(config, endpoints.kafka, topics)
    shop = workshop(config, spark, endpoints, told, found, epoch, first, landed.topic_ids)
    retention = Retention(config)
    lander = _lander(shop, topics, landed, retention)
    shop.applier.first.read = lander.read
    shop.applier.before_cut, shop.applier.position = watch.look, watch.position
    return Running(shop, topics, lander, watch, retention)


def _topics(config: Config, found: Sources) -> list[str]:
    """Those of the tables, of the notes of structure, and of the transaction markers."""
    tables = (source.table.topic(config.name) for source in found.tables)
    return [*tables, STRUCTURE.topic(config.name), markers(config)]


def _first(config: Config, kafka: str, topics: list[str]) -> FirstSnapshot:
    ends = partial(end_offsets, kafka, topics, committed=False)
    return FirstSnapshot(ends, marker_topic=markers(config))


def _lander(
    shop: Workshop, topics: list[str], landed: LandedPosition, retention: Retention
) -> Lander:
    """It goes on from ``landed``, and looks whether each topic is the one of then."""
    ids = {topic: landed.topic_ids[topic] for topic in topics}
    return Lander(
        shop.spark,
        log_path(shop.config),
        landed,
        shop.applier.inbox.add,
        shop.config.job,
        look=TopicWatch(shop.endpoints.kafka, ids).look,
        notes_topic=shop.applier.notes_topic,
        expired=retention.expired,
    )


def _ended(query: StreamingQuery) -> CdcError:
    error = query.exception()
    return CdcError(
        ErrorKind.INTERNAL,
        "the landing query ended",
        detail=told(error) if error else "",
        remedy="see the job's log; it goes on from the log's position when it is started again",
    )


def _fresh_checkpoint(state_dir: Path) -> Path:
    """A directory of this run alone; those of earlier runs are removed."""
    root = state_dir / "checkpoints"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / uuid.uuid4().hex
    folder.mkdir(parents=True)
    return folder
