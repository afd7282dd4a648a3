"""Gets from running servers to a running connector, before ``up`` starts the job. Idempotent."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

from cdc.capture import first_slot
from cdc.capture.continuity import continues, markers, refuse_other_source
from cdc.capture.new_epoch import begin
from cdc.config import READ_LOST, Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.topics import TopicSpec, ensure_topics
from cdc.lake.layout import epochs_path
from cdc.lake.records.epochs import last
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import captured, settings
from cdc.source.connector.start import START_SECONDS, await_running
from cdc.source.notes.baseline import note_baseline
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect
from cdc.source.server.finding import Level
from cdc.source.server.slot import LostChangesError
from cdc.source.setup.preflight import role_findings, server_findings
from cdc.source.setup.prepare import prepare
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir
from cdc.state.endpoints import write_source_secret
from cdc.state.pipeline import Pipeline
from cdc.tables import HEARTBEAT, SIGNAL, STRUCTURE, TableId, TableMode
from cdc.waiting import until

Say = Callable[[str], None]
SLOT_SECONDS: Final = 60.0
"""How long open transactions of the application may delay the creation of the slot."""
_SECRET: Final = "placeholder"  # noqa: S105 - the name of a file


def establish(
    pipeline: Pipeline, *, new_epoch: bool = False, say: Say = lambda _: None
) -> list[SourceTable]:
    """Prepare source and topics and start the connector; return the captured tables.

    Returns when the connector runs and has its slot. A table that has become unfit is returned as
    such, and the others go on. With ``new_epoch`` a broken chain is replaced by a new one, without
    a snapshot. ``source.on_lost_changes`` may request that for every chain that lost changes.
    ``say`` receives progress messages of long steps.

    Raises SOURCE_NOT_READY, CONFLICT (with ``new_epoch`` also for an unbroken chain), TIMEOUT
    naming the pids that block the slot, and CHAIN_BROKEN if going on would lose changes.
    """
    try:
        return _established(pipeline, say, new_epoch=new_epoch)
    except LostChangesError:
        if new_epoch or pipeline.config.source.on_lost_changes != READ_LOST:
            raise
    return _established(pipeline, say, new_epoch=True)


def _established(pipeline: Pipeline, say: Say, *, new_epoch: bool) -> list[SourceTable]:
    config = pipeline.config
    with connect(pipeline.endpoints.source_url) as connection:
        refuse_unfit(connection, config)
        if not new_epoch:  # before anything is read or created in the wrong source
            refuse_other_source(connection, pipeline)
        known = (_captured if new_epoch else begun)(pipeline)
        tables = captured_tables(connection, config, known)
        prepare(connection, config, [table for table in tables if table.unfit is None])
        if new_epoch:
            return _start_anew(connection, pipeline, tables, say)
        return _start(connection, pipeline, tables)


def begun(pipeline: Pipeline) -> frozenset[TableId]:
    """Return the tables the connector captures; none before it has stored a position."""
    if worker_rest.offsets(pipeline.endpoints.connect, pipeline.name) is None:
        return frozenset()
    return _captured(pipeline)


def _captured(pipeline: Pipeline) -> frozenset[TableId]:
    """The tables that the connector is configured for, even if its position is lost."""
    return captured(worker_rest.configuration(pipeline.endpoints.connect, pipeline.name))


def refuse_unfit(connection: Connection, config: Config) -> None:
    """Check server and role; raise SOURCE_NOT_READY with the first error found."""
    checks = chain(server_findings(connection), role_findings(connection, config, ()))
    for finding in checks:
        if finding.level is Level.ERROR:
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{finding.subject} {finding.message}",
                remedy=finding.remedy,
            )


def topic_specs(config: Config, tables: list[SourceTable]) -> list[TopicSpec]:
    """Return the topics of these tables and the control topics, with their settings.

    Topics of keyed tables are compacted. Events of tables without a key share one key, so their
    topics are not. A topic keeps the policy that its table's first key called for; the lake
    records when the key changed.

    Events get the broker's timestamps: it refuses a producer's timestamp that is an hour ahead of
    its clock, and the worker would be stuck as long as their clocks differ.
    """
    timed = {"message.timestamp.type": "LogAppendTime"}
    kept = timed | {"cleanup.policy": "delete", "retention.ms": "-1"}
    compacted = timed | {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(config.kafka.min_compaction_lag_ms),
        "delete.retention.ms": str(config.kafka.delete_retention_ms),
    }
    keyed = [t.table.topic(config.name) for t in tables if t.mode is TableMode.KEYED]
    others = [t.table.topic(config.name) for t in tables if t.mode is not TableMode.KEYED]
    control = [table.topic(config.name) for table in (HEARTBEAT, SIGNAL, STRUCTURE)]
    return [
        *(TopicSpec(name, compacted, instead=kept) for name in keyed),
        *(TopicSpec(name, kept, instead=compacted) for name in others),
        *(TopicSpec(name, compacted) for name in (*control, written_by_itself(config.name))),
        TopicSpec(markers(config), kept),
    ]


def written_by_itself(prefix: str) -> str:
    """Return the topic of Debezium's own heartbeats, which bypass the heartbeat table."""
    return f"__debezium-heartbeat.{prefix}"


def placeholder(pipeline: Pipeline) -> str:
    """Return the placeholder for unchanged TOAST values, the connector's own if it has one.

    It is random, so that no value of the application equals it, and never changes. It is also
    stored in the state directory.
    """
    state = StateDir(pipeline.config.state_dir)
    running = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name)
    if running is None or not running.get(worker_rest.PLACEHOLDER):
        return state.secret(_SECRET)
    token = running[worker_rest.PLACEHOLDER]
    write_private(state.secrets / _SECRET, token)
    return token


def has_begun_here(config: Config) -> bool:
    """Return whether a connector may have been created from this state directory."""
    return (StateDir(config.state_dir).secrets / _SECRET).exists()


def connector_settings(pipeline: Pipeline, tables: list[SourceTable]) -> dict[str, str]:
    """Return the settings to start the connector with; only a lake's first epoch has a snapshot."""
    return settings(
        pipeline,
        tables,
        placeholder=placeholder(pipeline),
        snapshot=last(epochs_path(pipeline.config)) is None,
    )


def _start(
    connection: Connection, pipeline: Pipeline, tables: list[SourceTable]
) -> list[SourceTable]:
    config = pipeline.config
    wanted = _created(pipeline, tables)
    goes_on = continues(connection, pipeline, tables)
    if not goes_on:  # a first start requires that every table is fit
        tables = captured_tables(connection, config)
        wanted = connector_settings(pipeline, tables)
    note_baseline(connection, [t for t in tables if t.unfit is None], again=not goes_on)
    if not goes_on:
        first_slot.forget(config)
        slot.probe(pipeline.endpoints.source_url, pipeline.name, SLOT_SECONDS)
    _let_run(pipeline, tables, wanted)
    await_running(connection, pipeline, streams=False)
    if not goes_on:
        first_slot.remember(connection, config)
    return tables


def _start_anew(
    connection: Connection, pipeline: Pipeline, tables: list[SourceTable], say: Say
) -> list[SourceTable]:
    """Start the connector in a new epoch; return when it has stored a position there.

    From then on a plain start continues in the epoch; before, it reports a lost position.
    """
    unchanged = _created(pipeline, tables)
    begin(
        connection,
        pipeline,
        tables,
        specs=topic_specs(pipeline.config, tables),
        start=lambda: _let_run(pipeline, tables, unchanged),
        say=say,
    )
    slot.probe(pipeline.endpoints.source_url, pipeline.name, SLOT_SECONDS)
    _let_run(pipeline, tables, connector_settings(pipeline, tables))
    await_running(connection, pipeline, streams=False)
    # After the slot was created, because no snapshot would bring these notes.
    note_baseline(connection, [t for t in tables if t.unfit is None], again=True)
    until(
        lambda: worker_rest.offsets(pipeline.endpoints.connect, pipeline.name) is not None,
        START_SECONDS,
        f"connector {pipeline.name} sent no event",
    )
    return tables


def _created(pipeline: Pipeline, tables: list[SourceTable]) -> dict[str, str]:
    """Create the connector without a task, unless it exists; return the settings to start with."""
    state = StateDir(pipeline.config.state_dir)
    state.create()
    if pipeline.config.connect.url is None:
        write_source_secret(state, pipeline.endpoints.source_url)
    wanted = connector_settings(pipeline, tables)
    worker_rest.create_stopped(pipeline.endpoints.connect, pipeline.name, wanted)
    return wanted


def _let_run(pipeline: Pipeline, tables: list[SourceTable], wanted: Mapping[str, str]) -> None:
    endpoints = pipeline.endpoints
    ensure_topics(
        endpoints.kafka,
        topic_specs(pipeline.config, tables),
        replication=pipeline.config.kafka.replication_factor,
    )
    if not worker_rest.is_configured(endpoints.connect, pipeline.name, wanted):
        # A failure of the old task, due to its old settings, would be attributed to the new one.
        worker_rest.stop(endpoints.connect, pipeline.name)
        worker_rest.configure(endpoints.connect, pipeline.name, wanted)
    worker_rest.resume(endpoints.connect, pipeline.name)
    _revive(pipeline)


def _revive(pipeline: Pipeline) -> None:
    """Restart a connector that failed earlier: its cause may be gone, and Connect never retries.

    A failure after the restart is a current one.
    """
    status = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
    if status is not None and status.failed:
        worker_rest.restart(pipeline.endpoints.connect, pipeline.name)
