"""Gathers what a run of the job needs to know at its start: from the source, the log, the lake."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from cdc.apply.local.driver_commit import DriverSettings
from cdc.apply.rounds.last_cut import Topics
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_factory import TableFactory
from cdc.capture import bootstrap, first_slot
from cdc.capture.continuity import marker_topic
from cdc.config import Config, masks_of
from cdc.events.structure.structure import Structure, parse
from cdc.job.open_log import open_log
from cdc.job.open_tables import TableOpener
from cdc.job.table_begin import beginnings
from cdc.kafka.registry_client import RegistryClient
from cdc.lake.layout import epochs_path, ledger_path, quarantine_path
from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import LandedPosition
from cdc.observe.stage_times import StageTimes
from cdc.operations.retention import cuts_kept
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.connector.converter_masks import refuse_other_masks
from cdc.source.notes.baseline import baselines
from cdc.source.notes.triggers import is_installed, structure_of
from cdc.source.server.connection import connect
from cdc.source.server.origin import Origin, origin
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAtStart:
    """Describes the source as it is at the start."""

    tables: list[SourceTable]
    baselines: Mapping[int, tuple[int, str]]  # by OID: id and structure of a table's first note
    notes_changes: bool  # whether event triggers write notes of structure changes
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """Hold what a run is composed from (cdc/job/compose_run.py); its tables are open."""

    source: SourceAtStart
    topics: Topics
    landed: LandedPosition
    epoch: Epoch | None  # None: the first
    registry: RegistryClient
    ledger: Ledger
    factory: TableFactory
    stages: StageTimes
    tables: Mapping[str, AppliedTable]  # by topic

    @property
    def landing_topics(self) -> list[str]:
        """Return the topics that the run lands."""
        return [*self.tables, self.topics.notes, self.topics.markers]


def gather_inputs(pipeline: Pipeline, spark: SparkSession, step: Callable[[], None]) -> RunInputs:
    """Open the log and the tables; call ``step`` after each table.

    Raises CHAIN_BROKEN where log, source or topics do not belong together.
    """
    config, endpoints = pipeline.config, pipeline.endpoints
    source = _source(pipeline)
    notes, marks = STRUCTURE.topic(pipeline.name), marker_topic(config)
    own = [table.table.topic(pipeline.name) for table in source.tables]
    landed = open_log(spark, pipeline, [*own, notes, marks], source.origin)
    epoch, registry = epochs.last(epochs_path(config)), RegistryClient(endpoints.registry)
    ledger = Ledger(ledger_path(config), kept=cuts_kept(config.job))
    stages = StageTimes()
    factory = _factory(pipeline, source, stages)
    opener = TableOpener(
        config=config,
        epoch=epoch,
        last=ledger.last(),
        copied=bootstrap.begins_by_copy(pipeline),
        begins=beginnings(config, notes, registry.schemas, source.baselines),
        tables=factory,
    )
    return RunInputs(
        source=source,
        topics=Topics(prefix=pipeline.name, markers=marks, notes=notes, ids=landed.topic_ids),
        landed=landed,
        epoch=epoch,
        registry=registry,
        ledger=ledger,
        factory=factory,
        stages=stages,
        tables=opener.open_tables(spark, source.tables, step),
    )


def _source(pipeline: Pipeline) -> SourceAtStart:
    with connect(pipeline.endpoints.source_url) as connection:
        return SourceAtStart(
            tables=captured_tables(
                connection, pipeline.config, bootstrap.captured_by_connector(pipeline)
            ),
            baselines=baselines(connection),
            notes_changes=is_installed(connection),
            origin=origin(connection),
        )


def _factory(pipeline: Pipeline, source: SourceAtStart, stages: StageTimes) -> TableFactory:
    config, endpoints = pipeline.config, pipeline.endpoints
    masks = masks_of(config.source)
    refuse_other_masks(masks, worker_rest.configuration(endpoints.connect, pipeline.name))
    return TableFactory(
        ApplyContext(
            quarantine=Quarantine(quarantine_path(config)),
            placeholder=bootstrap.placeholder(pipeline),
            policy=config.job,
            schema_policy=config.source.schema_policy,
            masks=masks,
            catalogue=(
                None if source.notes_changes else partial(_structure_now, endpoints.source_url)
            ),
            slot_lsn=first_slot.first_lsn(config),
            driver=_driver(config, stages, tables=len(source.tables)),
        )
    )


def _driver(config: Config, stages: StageTimes, *, tables: int) -> DriverSettings | None:
    """Return what it takes to apply without Spark; None where all is left to Spark."""
    if not config.job.local_events:
        return None
    return DriverSettings(
        index_directory=config.state_dir / "key_index",
        stages=stages,
        executor=ThreadPoolExecutor(1, thread_name_prefix="upkeep"),
        check_directory=config.state_dir / "cross_check",
        index_bytes=(config.job.index_memory_mb << 20) // max(1, tables),
    )


def _structure_now(source_url: str, oid: int) -> Structure | None:
    with connect(source_url) as connection:
        text = structure_of(connection, oid)
    return None if text is None else parse(text)
