"""What a run of the job is put together of, before its first round: tables, rounds, operations."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from cdc.apply.rounds.first_snapshot import FirstSnapshot
from cdc.apply.rounds.rounds import Applier
from cdc.capture import bootstrap, first_slot
from cdc.capture.continuity import markers
from cdc.config import Config
from cdc.events.structure.structure import Structure, parse
from cdc.job.opening import Opener, beginnings
from cdc.kafka.registry import RegistryClient
from cdc.lake.layout import ledger_path, log_path, quarantine_path, readings_path
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Readings
from cdc.operations.desk.context import Workshop
from cdc.operations.retention import cuts_kept
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.notes.baseline import baselines
from cdc.source.notes.triggers import is_installed, structure_of
from cdc.source.server.connection import connect
from cdc.source.server.origin import Origin, origin
from cdc.state import requests
from cdc.state.endpoints import Endpoints
from cdc.state.job_state import Told
from cdc.tables import STRUCTURE


@dataclass(frozen=True, slots=True)
class Sources:
    """The source at the start; ``noted``: whether it notes changes of structures."""

    tables: list[SourceTable]
    begins: Mapping[int, tuple[int, str]]
    noted: bool
    origin: Origin


def sources(config: Config, endpoints: Endpoints) -> Sources:
    """Ask the source what is captured, and which source it is."""
    with connect(endpoints.source_url) as connection:
        tables = captured_tables(connection, config, bootstrap.begun(config, endpoints))
        noted = is_installed(connection)
        return Sources(tables, baselines(connection), noted, origin(connection))


def workshop(  # noqa: PLR0917 - what a run has learnt at its start
    config: Config,
    spark: SparkSession,
    endpoints: Endpoints,
    told: Told,
    found: Sources,
    epoch: Epoch | None,
    first: FirstSnapshot,
    topic_ids: Mapping[str, str],
) -> Workshop:
    """The tables opened, the rounds over them, and what operations work with."""
    registry = RegistryClient(endpoints.registry)
    ledger = Ledger(ledger_path(config), kept=cuts_kept(config.job))
    quarantine, notes = Quarantine(quarantine_path(config)), STRUCTURE.topic(config.name)
    opener = Opener(
        config=config,
        epoch=epoch,
        last=ledger.last(),
        quarantine=quarantine,
        placeholder=bootstrap.placeholder(config, endpoints),
        begins=beginnings(spark, config, notes, registry.schemas, found.begins),
        catalogue=None if found.noted else partial(_catalogue, endpoints.source_url),
        slot_lsn=first_slot.known(config),
    )
    applier = Applier(
        spark,
        opener.opened(spark, found.tables, told.step),
        prefix=config.name,
        marker_topic=markers(config),
        notes_topic=notes,
        log_path=log_path(config),
        ledger=ledger,
        schemas=registry.schemas,
        requests_dir=requests.directory(config.state_dir),
        threads=config.job.merge_threads,
        epoch=epoch,
        first=first,
        budget=config.job.max_events_per_batch,
        topic_ids=topic_ids,
        patience_seconds=config.job.transaction_alarm_seconds,
    )
    return Workshop(
        config=config,
        endpoints=endpoints,
        spark=spark,
        applier=applier,
        quarantine=quarantine,
        readings=Readings(readings_path(config)),
        epoch=epoch,
        token=opener.placeholder,
    )


def _catalogue(source_url: str, oid: int) -> Structure | None:
    with connect(source_url) as connection:
        text = structure_of(connection, oid)
    return None if text is None else parse(text)
