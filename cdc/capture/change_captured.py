"""Changes the captured tables in source, topics and connector, while the other tables go on.

Everything is checked before anything is changed, and each step skips what an earlier call has
done, so the next call finishes an interrupted one. The job learns of the change afterwards.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from cdc.capture.bootstrap import refuse_unfit, write_secrets
from cdc.capture.continuity import in_first_snapshot
from cdc.capture.topic_specs import topic_specs
from cdc.config import Config, masks_of
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.topics import ensure_topics
from cdc.source.catalog.captured import wanted_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.connector.connector_start import await_running, reconfigure
from cdc.source.connector.converter_masks import refuse_new_salt, refuse_renamed
from cdc.source.connector.settings import FIRST, SNAPSHOT_MODE, configured_tables, settings
from cdc.source.notes.baseline import note_baseline
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect, identifier, translated
from cdc.source.server.finding import Level
from cdc.source.setup.preflight import role_findings
from cdc.source.setup.prepare import prepare, publication_tables
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId

_OF_THE_CHAIN: Final = (worker_rest.PLACEHOLDER, SNAPSHOT_MODE, FIRST)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedChange:
    """Report what a call changed.

    ``tables`` are all tables captured now, including those that are no longer fit.
    """

    added: tuple[TableId, ...]  # their topics hold changes only, not the rows they had before
    removed: tuple[TableId, ...]
    tables: tuple[SourceTable, ...]
    reconfigured: bool  # whether the connector's settings changed


def change_captured(pipeline: Pipeline) -> CapturedChange:
    """Capture the tables that ``source.tables`` names now; return when the connector does so.

    Existing rows of a new table are not captured: they have to be read. A removed table stays in
    the publication.

    Raises, before anything is changed: SOURCE_NOT_READY for a new table that is not fit or that the
    role may not publish, CONFLICT until the first snapshot has finished, CHAIN_BROKEN without a
    slot, UNREACHABLE for a server that does not answer.
    """
    before = running_configuration(pipeline)
    known = configured_tables(before)
    with connect(pipeline.endpoints.source_url) as connection:
        tables = _checked(connection, pipeline.config, known)
        _refuse_lost(connection, pipeline.config)
        added = [table for table in tables if table.table not in known]
        refuse_renamed(tables, masks_of(pipeline.config.source), before)
        wanted = settings_for(pipeline, tables, before)
        refuse_new_salt(wanted, before)
        _prepare(connection, pipeline, tables, added)
        changed = before != wanted
        if changed:
            write_secrets(pipeline)
            reconfigure(connection, pipeline, wanted)
        _ensure_running(connection, pipeline)
    return CapturedChange(
        added=tuple(table.table for table in added),
        removed=tuple(sorted(known - {table.table for table in tables})),
        tables=tuple(tables),
        reconfigured=changed,
    )


def running_configuration(pipeline: Pipeline) -> dict[str, str]:
    """Return the connector's configuration.

    Raises CONFLICT until its first snapshot has finished: the captured tables cannot be changed
    before.
    """
    running = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name)
    position = worker_rest.offsets(pipeline.endpoints.connect, pipeline.name)
    if running is None or position is None:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"connector {pipeline.name} has captured nothing yet",
            remedy="run wal2lake up: it captures every table that source.tables names",
        )
    if in_first_snapshot(position):
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the first snapshot of connector {pipeline.name} has not finished",
            remedy="try again once wal2lake status shows streaming",
        )
    return running


def settings_for(
    pipeline: Pipeline, tables: list[SourceTable], running: Mapping[str, str]
) -> dict[str, str]:
    """Return the connector's settings for these tables, in the form the worker reports them.

    Settings that belong to the chain do not change: the placeholder and the snapshot mode.
    """
    unchanged = {key: running[key] for key in _OF_THE_CHAIN if key in running}
    placeholder = running.get(worker_rest.PLACEHOLDER, "")
    wanted = settings(pipeline, tables, placeholder=placeholder)
    return {**wanted, **unchanged, "name": pipeline.name}


def unpublish(pipeline: Pipeline, tables: Collection[TableId]) -> None:
    """Remove tables from the publication; ignore those that are not in it or do not exist."""
    with connect(pipeline.endpoints.source_url) as connection:
        members = publication_tables(connection, pipeline.name) or set()
        dropped = [identifier(table) for table in sorted(tables) if table in members]
        if dropped:
            statement = sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(
                sql.Identifier(pipeline.name), sql.SQL(", ").join(dropped)
            )
            with translated(f"removing {len(dropped)} tables from publication {pipeline.name}"):
                connection.execute(statement)


def _checked(
    connection: Connection, config: Config, known: Collection[TableId]
) -> list[SourceTable]:
    """Return the tables to capture, if server, role and every new table are fit.

    Raises SOURCE_NOT_READY otherwise.
    """
    refuse_unfit(connection, config)
    tables = wanted_tables(connection, config, known)
    fit = tuple(table for table in tables if table.unfit is None)
    for finding in role_findings(connection, config, fit):
        if finding.level is Level.ERROR:
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{finding.subject} {finding.message}",
                remedy=finding.remedy,
            )
    return tables


def _refuse_lost(connection: Connection, config: Config) -> None:
    state = slot.slot_state(connection, config.name)
    slot.refuse_foreign(config.name, state, read_by_us=True)
    if state is None:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"slot {config.name} is gone: changes since it was dropped are lost",
            remedy="run wal2lake up: its error says how to recover",
        )


def _prepare(
    connection: Connection, pipeline: Pipeline, tables: list[SourceTable], added: list[SourceTable]
) -> None:
    """Create what the connector needs before it sends the first event of a new table."""
    config = pipeline.config
    specs = topic_specs(config, tables)
    ensure_topics(pipeline.endpoints.kafka, specs, replication=config.kafka.replication_factor)
    prepare(connection, config, [table for table in tables if table.unfit is None])
    # Also for a table that was captured before: it begins with its current structure.
    note_baseline(connection, added, again=True)


def _ensure_running(connection: Connection, pipeline: Pipeline) -> None:
    """Resume the connector if an interrupted call left it stopped, and wait until it runs."""
    endpoints = pipeline.endpoints
    status = worker_rest.status(endpoints.connect, pipeline.name)
    if status is None or not status.running:
        worker_rest.resume(endpoints.connect, pipeline.name)
        if status is not None and status.failed:
            worker_rest.restart(endpoints.connect, pipeline.name)
    await_running(connection, pipeline, streams=True)
