"""The long-running job: one landing query, and rounds of apply beside it, until it is stopped."""

import shutil
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdc.apply import recovery
from cdc.apply.land import Lander
from cdc.apply.rounds import Applier
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.structure import Structure, parse
from cdc.kafka.registry import RegistryClient
from cdc.lake import job_state
from cdc.lake.job_state import JobState
from cdc.lake.layout import ledger_path, log_path, quarantine_path, refuse_unwritable
from cdc.lake.ledger import Ledger
from cdc.lake.quarantine import Quarantine
from cdc.lake.session import build
from cdc.operate import requests
from cdc.source import bootstrap
from cdc.source.baseline import baselines
from cdc.source.captured import captured_tables
from cdc.source.postgres import connect
from cdc.source.structure_notes import is_installed, structure_of
from cdc.stack.endpoints import Endpoints
from cdc.tables import STRUCTURE

IDLE_SECONDS: Final = 0.5  # how long a request for a cut may wait in an idle job
logger = structlog.get_logger(__name__)


def run(config: Config, endpoints: Endpoints, stop: threading.Event) -> None:
    """Land and apply until ``stop`` is set; raises what ended the job otherwise."""
    refuse_unwritable(config)
    with job_state.alone(config.state_dir):
        started_at = datetime.now(UTC)
        _tell(config, "starting", started_at)
        try:
            spark = build(config)
            try:
                _run(config, endpoints, spark, stop, lambda: _tell(config, "applying", started_at))
            finally:
                spark.stop()
        finally:
            _tell(config, "stopped", started_at)


def _run(
    config: Config,
    endpoints: Endpoints,
    spark: SparkSession,
    stop: threading.Event,
    ready: Callable[[], None],
) -> None:
    with connect(endpoints.source_url) as connection:
        sources = captured_tables(connection, config, bootstrap.begun(config, endpoints))
        beginnings = baselines(connection)
        noted = is_installed(connection)
    markers = bootstrap.markers(config)
    notes = STRUCTURE.topic(config.name)
    topics = [*(source.table.topic(config.name) for source in sources), notes, markers]
    landed = recovery.open_log(spark, config, endpoints, topics)
    registry = RegistryClient(endpoints.registry)
    quarantine = Quarantine(quarantine_path(config))
    applier = Applier(
        spark,
        recovery.open_tables(
            spark,
            config,
            sources,
            quarantine,
            bootstrap.placeholder(config, endpoints),
            begins=recovery.beginnings(spark, config, notes, registry.schemas, beginnings),
            catalogue=None if noted else partial(_catalogue, endpoints.source_url),
        ),
        prefix=config.name,
        marker_topic=markers,
        notes_topic=notes,
        log_path=log_path(config),
        ledger=Ledger(ledger_path(config)),
        schemas=registry.schemas,
        requests_dir=requests.directory(config.state_dir),
        threads=config.job.merge_threads,
        epoch=landed.epoch,
        budget=config.job.max_events_per_batch,
    )
    lander = Lander(spark, log_path(config), landed, applier.inbox.add, config.job)
    try:
        recovery.catch_up(spark, log_path(config), applier)
        query = lander.start(
            topics,
            bootstrap_servers=endpoints.kafka,
            checkpoint=str(_fresh_checkpoint(config.state_dir)),
        )
        ready()
        try:
            _loop(applier, query, stop, partial(recovery.resume, spark, log_path(config), applier))
        finally:
            query.stop()
    finally:
        applier.close()


def _catalogue(source_url: str, oid: int) -> Structure | None:
    with connect(source_url) as connection:
        text = structure_of(connection, oid)
    return None if text is None else parse(text)


def _loop(
    applier: Applier, query: StreamingQuery, stop: threading.Event, resume: Callable[[], None]
) -> None:
    """Rounds until ``stop``; what ended the landing query ends the job."""
    seen = 0
    while not stop.is_set():
        if not query.isActive:
            raise _ended(query)
        waiting = applier.inbox.waiting()
        if not applier.round():
            seen = waiting[-1].number if waiting else seen
            applier.inbox.wait(seen, IDLE_SECONDS)
        resume()


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


def _tell(config: Config, state: str, started_at: datetime) -> None:
    job_state.write(config.state_dir, JobState.of_this_process(state, started_at))
