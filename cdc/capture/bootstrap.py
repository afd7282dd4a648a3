"""Get from running servers to a running connector, before ``up`` starts the job. Idempotent."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

from cdc.capture import first_slot
from cdc.capture.continuity import continues, in_first_snapshot, refuse_other_source
from cdc.capture.new_epoch import begin
from cdc.capture.topic_specs import topic_specs
from cdc.config import COPY, READ_LOST, Config, masks_of
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.topics import ensure_topics
from cdc.lake.layout import epochs_path
from cdc.lake.records.epochs import last
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.connector.connector_start import START_SECONDS, await_running
from cdc.source.connector.converter_masks import refuse_renamed
from cdc.source.connector.settings import FIRST, configured_tables, settings
from cdc.source.notes.baseline import note_baseline
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect
from cdc.source.server.finding import Level
from cdc.source.server.slot import LostChangesError
from cdc.source.setup.preflight import role_findings, server_findings
from cdc.source.setup.prepare import prepare
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir
from cdc.state.endpoints import write_connector_secrets
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId
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
        known = (_captured if new_epoch else captured_by_connector)(pipeline)
        tables = captured_tables(connection, config, known)
        prepare(connection, config, [table for table in tables if table.unfit is None])
        if new_epoch:
            return _start_anew(connection, pipeline, tables, say)
        return _start(connection, pipeline, tables)


def captured_by_connector(pipeline: Pipeline) -> frozenset[TableId]:
    """Return the tables the connector captures; none before it has stored a position."""
    if worker_rest.offsets(pipeline.endpoints.connect, pipeline.name) is None:
        return frozenset()
    return _captured(pipeline)


def _captured(pipeline: Pipeline) -> frozenset[TableId]:
    """Return the tables that the connector is configured for, even if its position is lost."""
    return configured_tables(worker_rest.configuration(pipeline.endpoints.connect, pipeline.name))


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


def placeholder(pipeline: Pipeline) -> str:
    """Return the placeholder for unchanged TOAST values, the connector's own if it has one.

    It is random, so that no value of the application equals it, and never changes. It is also
    stored in the state directory.
    """
    state = StateDir(pipeline.config.state_dir)
    running = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name)
    if running is None or not running.get(worker_rest.PLACEHOLDER):
        return state.secret(_SECRET)
    connectors_own = running[worker_rest.PLACEHOLDER]
    write_private(state.secrets / _SECRET, connectors_own)
    return connectors_own


def has_begun_here(config: Config) -> bool:
    """Return whether a connector may have been created from this state directory."""
    return (StateDir(config.state_dir).secrets / _SECRET).exists()


def begins_by_copy(pipeline: Pipeline) -> bool:
    """Return whether the job reads the first snapshot: as the connector began, if it exists."""
    running = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name)
    if running is None:
        return pipeline.config.source.snapshot == COPY
    return running.get(FIRST) == COPY


def connector_settings(
    pipeline: Pipeline, tables: list[SourceTable], *, by_copy: bool
) -> dict[str, str]:
    """Return the settings to start the connector with.

    It reads a snapshot only in a lake's first epoch, and only if the job does not (``by_copy``).
    """
    first = last(epochs_path(pipeline.config)) is None
    return settings(
        pipeline,
        tables,
        placeholder=placeholder(pipeline),
        snapshot=first and not by_copy,
        first=COPY if first and by_copy else "",
    )


def _start(
    connection: Connection, pipeline: Pipeline, tables: list[SourceTable]
) -> list[SourceTable]:
    config = pipeline.config
    wanted = _created(pipeline, tables)
    if continues(connection, pipeline, tables):
        note_baseline(connection, [t for t in tables if t.unfit is None], again=False)
        if _reads_first_rows(pipeline):  # and began so, if it was deleted since
            wanted = connector_settings(pipeline, tables, by_copy=False)
        _let_run(pipeline, tables, wanted)
        await_running(connection, pipeline, streams=False)
        return tables
    tables = captured_tables(connection, config)  # a first start requires that every table is fit
    by_copy = config.source.snapshot == COPY
    if not by_copy:  # the snapshot brings the notes
        note_baseline(connection, tables, again=True)
    first_slot.forget(config)
    slot.probe(pipeline.endpoints.source_url, pipeline.name, SLOT_SECONDS)
    _let_run(pipeline, tables, connector_settings(pipeline, tables, by_copy=by_copy))
    await_running(connection, pipeline, streams=False)
    first_slot.remember(connection, config)
    if by_copy:  # after the slot was created, because no snapshot would bring them
        note_baseline(connection, tables, again=True)
        _await_position(pipeline)
    return tables


def _reads_first_rows(pipeline: Pipeline) -> bool:
    """Return whether the connector stored its position in the middle of the first snapshot."""
    position = worker_rest.offsets(pipeline.endpoints.connect, pipeline.name)
    return position is not None and in_first_snapshot(position)


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
    _let_run(pipeline, tables, connector_settings(pipeline, tables, by_copy=False))
    await_running(connection, pipeline, streams=False)
    # After the slot was created, because no snapshot would bring these notes.
    note_baseline(connection, [t for t in tables if t.unfit is None], again=True)
    _await_position(pipeline)
    return tables


def _await_position(pipeline: Pipeline) -> None:
    until(
        lambda: worker_rest.offsets(pipeline.endpoints.connect, pipeline.name) is not None,
        START_SECONDS,
        f"connector {pipeline.name} sent no event",
    )


def write_secrets(pipeline: Pipeline) -> None:
    """Write the secrets that an embedded worker reads; its configuration refers to them."""
    if pipeline.config.connect.url is None:
        salt, state = masks_of(pipeline.config.source).salt, StateDir(pipeline.config.state_dir)
        found = pipeline.endpoints
        write_connector_secrets(state, found.source_url, found.registry, salt)


def _created(pipeline: Pipeline, tables: list[SourceTable]) -> dict[str, str]:
    """Create the connector without a task, unless it exists; return the settings to start with."""
    state = StateDir(pipeline.config.state_dir)
    state.create()
    write_secrets(pipeline)
    running = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name)
    refuse_renamed(tables, masks_of(pipeline.config.source), running)
    wanted = connector_settings(pipeline, tables, by_copy=begins_by_copy(pipeline))
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
