"""The long-running job: one landing query, and rounds of apply beside it, until it is stopped."""

import shutil
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdc.apply import recovery
from cdc.apply.assembly import sources, workshop
from cdc.apply.first_snapshot import FirstSnapshot
from cdc.apply.land import Lander
from cdc.apply.replaying import nothing
from cdc.apply.rounds import Applier
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topics_found import TopicWatch
from cdc.lake import epochs, job_state
from cdc.lake.job_state import Told
from cdc.lake.layout import (
    epochs_path,
    log_path,
    refuse_unwritable,
)
from cdc.lake.session import build
from cdc.operate import reload, running_settings
from cdc.operate.at_work import at_work
from cdc.operate.by_itself import read_lost
from cdc.operate.plan import RELOADED
from cdc.operate.retention import Retention
from cdc.source.continuity import markers
from cdc.source.watch import SourceWatch
from cdc.stack.endpoints import Endpoints
from cdc.tables import STRUCTURE

IDLE_SECONDS: Final = 0.5  # how long a request for a cut may wait in an idle job
logger = structlog.get_logger(__name__)


def run(read: Callable[[], Config], endpoints: Endpoints, stop: threading.Event) -> None:
    """Land and apply until ``stop`` is set; raises what ended the job otherwise.

    ``read`` gives the configuration as its file has it now, at the start and when somebody asks.
    """
    config = read()
    refuse_unwritable(config)
    with job_state.alone(config):
        told = Told(config.state_dir)
        told.enter("starting")
        try:
            spark = build(config)
            try:
                _keep_running(read, config, _Job(endpoints, spark, stop, told))
            finally:
                spark.stop()
        finally:
            told.enter("stopped")


@dataclass(frozen=True, slots=True)
class _Job:
    """What stays when the configuration changes."""

    endpoints: Endpoints
    spark: SparkSession
    stop: threading.Event
    told: Told


def _keep_running(read: Callable[[], Config], config: Config, job: _Job) -> None:
    """Begin anew with the configuration of the file whenever somebody asks for it."""
    while not job.stop.is_set():
        token = reload.pending(config.state_dir)
        wanted, error = _read_again(read, config) if token else (config, None)
        done = partial(reload.done, config.state_dir, token, error) if token else nothing
        try:
            _run(wanted, job, done)
        except CdcError as refused:
            if token is None or reload.pending(config.state_dir) != token:
                raise
            # It does not go with the new one: the asker hears why, and the old one goes on.
            reload.done(config.state_dir, token, refused)
        else:
            config = wanted


def _read_again(read: Callable[[], Config], before: Config) -> tuple[Config, CdcError | None]:
    """What of the file a running job takes over; all of before where it cannot be read.

    The other keys count after the next start.
    """
    try:
        wanted = read()
    except CdcError as error:
        return before, error
    names = [key.removeprefix("source.") for key in RELOADED if key.startswith("source.")]
    source = {name: getattr(wanted.source, name) for name in names}
    change = {"job": wanted.job, "source": before.source.model_copy(update=source)}
    return before.model_copy(update=change), None


def _run(config: Config, job: _Job, done: Callable[[], None]) -> None:
    """Until the job is to stop or the configuration changed; ``done`` once it applies."""
    found = sources(config, job.endpoints)
    topics = [
        *(source.table.topic(config.name) for source in found.tables),
        STRUCTURE.topic(config.name),
        markers(config),
    ]
    kafka = job.endpoints.kafka
    landed = recovery.open_log(job.spark, config, kafka, topics, found.origin)
    watch = SourceWatch(job.endpoints.source_url, config.name, found.origin)
    epoch = epochs.last(epochs_path(config))
    ends = partial(end_offsets, kafka, topics, committed=False)
    first = FirstSnapshot(ends, marker_topic=markers(config))
    shop = workshop(
        config, job.spark, job.endpoints, job.told, found, epoch, first, landed.topic_ids
    )
    applier = shop.applier
    topic_watch = TopicWatch(kafka, {topic: landed.topic_ids[topic] for topic in topics})
    retention = Retention(config)
    lander = Lander(
        job.spark,
        log_path(config),
        landed,
        applier.inbox.add,
        config.job,
        look=topic_watch.look,
        expired=retention.expired,
    )
    applier.first.read = lander.read
    applier.before_cut = watch.look
    applier.position = watch.position
    try:
        watch.look(applier.base.lsn or 0)
        recovery.catch_up(job.spark, log_path(config), applier, epoch, job.told.step)
        query = lander.start(
            topics,
            bootstrap_servers=kafka,
            checkpoint=str(_fresh_checkpoint(config.state_dir)),
        )
        try:
            read_lost(config, applier.tables.values(), epoch=epochs.number(epoch))
            with at_work(shop):
                running_settings.remember(config)
                job.told.enter("applying")
                done()

                def between() -> None:
                    recovery.resume(job.spark, log_path(config), applier, epoch)
                    retention.look()

                until = _Until(job.stop, config.state_dir)
                _loop(applier, _Landing(lander, query), until, between, job.told.hear)
        finally:
            lander.stop()
    finally:
        applier.close()
        watch.close()


@dataclass(frozen=True, slots=True)
class _Until:
    """What ends the rounds: the end of the job, or a change of its configuration."""

    stop: threading.Event
    state_dir: Path

    def is_set(self) -> bool:
        return self.stop.is_set() or reload.pending(self.state_dir) is not None


@dataclass(frozen=True, slots=True)
class _Landing:
    """The landing query, and what it says of its end."""

    lander: Lander
    query: StreamingQuery

    def refuse_ended(self) -> None:
        if not self.query.isActive:
            raise self.lander.refused or _ended(self.query)


def _loop(
    applier: Applier,
    landing: _Landing,
    until: _Until,
    between: Callable[[], None],
    hear: Callable[[str], None],
) -> None:
    """Rounds until then; what ended the landing query ends the job."""
    seen = 0
    while not until.is_set():
        landing.refuse_ended()
        waiting = applier.inbox.waiting()
        if not applier.round():
            seen = waiting[-1].number if waiting else seen
            applier.before_cut(applier.base.lsn or 0)
            applier.inbox.wait(seen, IDLE_SECONDS)
        hear(applier.alarm)
        between()


def _ended(query: StreamingQuery) -> CdcError:
    error = query.exception()
    return CdcError(
        ErrorKind.INTERNAL,
        "the landing query ended",
        detail=str(error).partition("\n")[0] if error else "",
        remedy="see the job's log; it goes on from the log's position when it is started again",
    )


def _fresh_checkpoint(state_dir: Path) -> Path:
    """A directory of this run alone; those of earlier runs are removed."""
    root = state_dir / "checkpoints"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / uuid.uuid4().hex
    folder.mkdir(parents=True)
    return folder
