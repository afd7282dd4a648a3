"""The tables that are captured, changed while the others go on: source, topics and connector.

Everything is looked at before anything is changed, and each step finds done what an earlier call
did, so a call that was interrupted is finished by the next. The job learns of it afterwards.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from cdc.capture.bootstrap import refuse_unfit, topic_specs
from cdc.capture.continuity import unfinished
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.topics import ensure_topics
from cdc.source.catalog.captured import wanted_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import captured, settings
from cdc.source.connector.start import await_running, reconfigure
from cdc.source.notes.baseline import note_baseline
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect, identifier, translated
from cdc.source.server.finding import Level
from cdc.source.setup.preflight import role_findings
from cdc.source.setup.prepare import prepare, published
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId

_OF_THE_CHAIN: Final = (worker_rest.PLACEHOLDER, "snapshot.mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recaptured:
    """What a call changed. Nothing of a table that was ``added`` is in its topic yet but changes.

    ``tables`` are all that are captured now, also those that are not fit any more.
    """

    added: tuple[TableId, ...]
    removed: tuple[TableId, ...]
    tables: tuple[SourceTable, ...]
    reconfigured: bool  # the connector has other settings than before


def recapture(config: Config, endpoints: Endpoints) -> Recaptured:
    """Capture what ``source.tables`` names now; returns when the connector runs so.

    The rows that a new table has already do not come: they have to be read. A table that is taken
    out stays in the publication. Raises before anything is changed: SOURCE_NOT_READY for a new
    table that is not fit or that the role may not publish, CONFLICT while the first snapshot is not
    over, CHAIN_BROKEN without a slot, UNREACHABLE for a server that does not answer.
    """
    before = running_configuration(config, endpoints)
    known = captured(before)
    with connect(endpoints.source_url) as connection:
        tables = _judged(connection, config, known)
        _refuse_lost(connection, config)
        added = [table for table in tables if table.table not in known]
        wanted = settings_for(config, endpoints, tables, before)
        _prepare(connection, config, endpoints, tables, added)
        changed = before != wanted
        if changed:
            reconfigure(connection, config, endpoints, wanted)
        _ensure_running(connection, config, endpoints)
    return Recaptured(
        added=tuple(table.table for table in added),
        removed=tuple(sorted(known - {table.table for table in tables})),
        tables=tuple(tables),
        reconfigured=changed,
    )


def running_configuration(config: Config, endpoints: Endpoints) -> dict[str, str]:
    """The connector's, once its first snapshot is over.

    Raises CONFLICT before: what is captured can be changed only where something is.
    """
    found = worker_rest.configuration(endpoints.connect, config.name)
    position = worker_rest.offsets(endpoints.connect, config.name)
    if found is None or position is None:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"connector {config.name} has captured nothing yet",
            remedy="wal2lake up captures all that source.tables names",
        )
    if unfinished(position):
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the first snapshot of connector {config.name} is not over",
            remedy="try again when wal2lake status says streaming",
        )
    return found


def settings_for(
    config: Config, endpoints: Endpoints, tables: list[SourceTable], running: Mapping[str, str]
) -> dict[str, str]:
    """The connector's settings for these tables, as the worker would tell them.

    What belongs to its chain stays: its own placeholder, and how it began.
    """
    kept = {key: running[key] for key in _OF_THE_CHAIN if key in running}
    placeholder = running.get(worker_rest.PLACEHOLDER, "")
    made = settings(config, endpoints, tables, placeholder=placeholder)
    return {**made, **kept, "name": config.name}


def unpublish(config: Config, endpoints: Endpoints, tables: Collection[TableId]) -> None:
    """Take tables out of the publication; those that are not in it, or are gone, are left alone."""
    with connect(endpoints.source_url) as connection:
        have = published(connection, config.name) or set()
        there = [identifier(table) for table in sorted(tables) if table in have]
        if there:
            statement = sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(
                sql.Identifier(config.name), sql.SQL(", ").join(there)
            )
            with translated(f"taking {len(there)} tables out of publication {config.name}"):
                connection.execute(statement)


def _judged(
    connection: Connection, config: Config, known: Collection[TableId]
) -> list[SourceTable]:
    """The tables to capture, when server, role and every new one of them are fit."""
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
            remedy="wal2lake up says what can be done",
        )


def _prepare(
    connection: Connection,
    config: Config,
    endpoints: Endpoints,
    tables: list[SourceTable],
    added: list[SourceTable],
) -> None:
    """All that must be there before the connector sends the first event of a new table."""
    specs = topic_specs(config, tables)
    ensure_topics(endpoints.kafka, specs, replication=config.kafka.replication_factor)
    prepare(connection, config, [table for table in tables if table.unfit is None])
    # Anew for one that was captured once: what it begins with is its structure of today.
    note_baseline(connection, added, again=True)


def _ensure_running(connection: Connection, config: Config, endpoints: Endpoints) -> None:
    """Also where an interrupted call left it stopped."""
    status = worker_rest.status(endpoints.connect, config.name)
    if status is None or not status.running:
        worker_rest.resume(endpoints.connect, config.name)
        if status is not None and status.failed:
            worker_rest.restart(endpoints.connect, config.name)
    await_running(connection, config, endpoints, streams=True)
