"""From running servers to a running connector: what ``up`` does before the job. Idempotent."""

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
from cdc.state.endpoints import Endpoints, write_source_secret
from cdc.tables import HEARTBEAT, SIGNAL, STRUCTURE, TableId, TableMode
from cdc.waiting import until

Say = Callable[[str], None]
SLOT_SECONDS: Final = 60.0
"""How long open transactions of the application may delay the slot."""
_SECRET: Final = "placeholder"  # noqa: S105 - the name of a file


def establish(
    config: Config,
    endpoints: Endpoints,
    *,
    new_epoch: bool = False,
    say: Say = lambda _: None,
) -> list[SourceTable]:
    """Preflight, source, topics, connector; returns when the connector runs and has its slot.

    Raises what stands in the way: SOURCE_NOT_READY, CONFLICT, TIMEOUT naming the pids in the way,
    CHAIN_BROKEN where going on would lose changes. A table that is not fit any more is returned
    as such, and the others go on. With ``new_epoch`` a broken chain is replaced by a new one,
    without a snapshot, and one that is whole is a CONFLICT. ``source.on_lost_changes`` may say
    that a chain which lost changes is replaced without being told.
    """
    try:
        return _established(config, endpoints, say, new_epoch=new_epoch)
    except LostChangesError:
        if new_epoch or config.source.on_lost_changes != READ_LOST:
            raise
    return _established(config, endpoints, say, new_epoch=True)


def _established(
    config: Config, endpoints: Endpoints, say: Say, *, new_epoch: bool
) -> list[SourceTable]:
    with connect(endpoints.source_url) as connection:
        refuse_unfit(connection, config)
        if not new_epoch:  # before anything is looked for, or made, in the wrong one
            refuse_other_source(connection, config, endpoints)
        known = (_captured if new_epoch else begun)(config, endpoints)
        tables = captured_tables(connection, config, known)
        prepare(connection, config, [table for table in tables if table.unfit is None])
        if new_epoch:
            return _start_anew(connection, config, endpoints, tables, say)
        return _start(connection, config, endpoints, tables)


def begun(config: Config, endpoints: Endpoints) -> frozenset[TableId]:
    """The tables of the first snapshot; none before the connector has sent anything."""
    if worker_rest.offsets(endpoints.connect, config.name) is None:
        return frozenset()
    return _captured(config, endpoints)


def _captured(config: Config, endpoints: Endpoints) -> frozenset[TableId]:
    """The tables that the connector is configured for, also where its position is lost."""
    return captured(worker_rest.configuration(endpoints.connect, config.name))


def refuse_unfit(connection: Connection, config: Config) -> None:
    """Raises SOURCE_NOT_READY with the first thing that is wrong with server or role."""
    checks = chain(server_findings(connection), role_findings(connection, config, ()))
    for finding in checks:
        if finding.level is Level.ERROR:
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{finding.subject} {finding.message}",
                remedy=finding.remedy,
            )


def topic_specs(config: Config, tables: list[SourceTable]) -> list[TopicSpec]:
    """Keyed topics are compacted. Events without a key of their own share one: they are kept.

    A topic keeps the policy of the key that its table had at first; the lake says when it changed.
    Events have the broker's time: it refuses a producer's that is an hour ahead of its clock, and
    a worker would stand still while their clocks differ.
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
    """The topic of the connector's own heartbeats, beside those that go through the table."""
    return f"__debezium-heartbeat.{prefix}"


def placeholder(config: Config, endpoints: Endpoints) -> str:
    """The token for an unchanged TOAST value: that of the connector, where there is one.

    It is random, so that no value of the application equals it, and never changes.
    """
    state = StateDir(config.state_dir)
    running = worker_rest.configuration(endpoints.connect, config.name)
    if running is None or not running.get(worker_rest.PLACEHOLDER):
        return state.secret(_SECRET)
    token = running[worker_rest.PLACEHOLDER]
    write_private(state.secrets / _SECRET, token)
    return token


def has_begun_here(config: Config) -> bool:
    """Return whether a connector may have been made from this state directory."""
    return (StateDir(config.state_dir).secrets / _SECRET).exists()


def connector_settings(
    config: Config, endpoints: Endpoints, tables: list[SourceTable]
) -> dict[str, str]:
    """Those to start it with: in a lake's later epochs it takes no snapshot."""
    return settings(
        config,
        endpoints,
        tables,
        placeholder=placeholder(config, endpoints),
        snapshot=last(epochs_path(config)) is None,
    )


def _start(
    connection: Connection, config: Config, endpoints: Endpoints, tables: list[SourceTable]
) -> list[SourceTable]:
    wanted = _created(config, endpoints, tables)
    goes_on = continues(connection, config, endpoints, tables)
    if not goes_on:  # then every table has to be fit
        tables = captured_tables(connection, config)
        wanted = connector_settings(config, endpoints, tables)
    note_baseline(connection, [t for t in tables if t.unfit is None], again=not goes_on)
    if not goes_on:
        first_slot.forget(config)
        slot.probe(endpoints.source_url, config.name, SLOT_SECONDS)
    _let_run(config, endpoints, tables, wanted)
    await_running(connection, config, endpoints, streams=False)
    if not goes_on:
        first_slot.remember(connection, config)
    return tables


def _start_anew(
    connection: Connection,
    config: Config,
    endpoints: Endpoints,
    tables: list[SourceTable],
    say: Say,
) -> list[SourceTable]:
    """Into a new epoch; returns when the connector has a position in it.

    From then on a start goes on in it; before, it finds the position lost.
    """
    as_it_was = _created(config, endpoints, tables)
    begin(
        connection,
        config,
        endpoints,
        tables,
        specs=topic_specs(config, tables),
        start=lambda: _let_run(config, endpoints, tables, as_it_was),
        say=say,
    )
    slot.probe(endpoints.source_url, config.name, SLOT_SECONDS)
    _let_run(config, endpoints, tables, connector_settings(config, endpoints, tables))
    await_running(connection, config, endpoints, streams=False)
    # After the slot was made: no snapshot would bring them.
    note_baseline(connection, [t for t in tables if t.unfit is None], again=True)
    until(
        lambda: worker_rest.offsets(endpoints.connect, config.name) is not None,
        START_SECONDS,
        f"connector {config.name} sent nothing",
    )
    return tables


def _created(config: Config, endpoints: Endpoints, tables: list[SourceTable]) -> dict[str, str]:
    """What the connector is to be started with; it exists afterwards, without a task if new."""
    state = StateDir(config.state_dir)
    state.create()
    if config.connect.url is None:
        write_source_secret(state, endpoints.source_url)
    wanted = connector_settings(config, endpoints, tables)
    worker_rest.create_stopped(endpoints.connect, config.name, wanted)
    return wanted


def _let_run(
    config: Config, endpoints: Endpoints, tables: list[SourceTable], wanted: Mapping[str, str]
) -> None:
    ensure_topics(
        endpoints.kafka, topic_specs(config, tables), replication=config.kafka.replication_factor
    )
    if not worker_rest.is_configured(endpoints.connect, config.name, wanted):
        # A task of before may fail by what it was told then, and would be taken for the new one's.
        worker_rest.stop(endpoints.connect, config.name)
        worker_rest.configure(endpoints.connect, config.name, wanted)
    worker_rest.resume(endpoints.connect, config.name)
    _revive(config, endpoints)


def _revive(config: Config, endpoints: Endpoints) -> None:
    """A new start for what failed earlier: its reason may be gone, and Connect never tries again.

    A failure that is there after it is today's.
    """
    status = worker_rest.status(endpoints.connect, config.name)
    if status is not None and status.failed:
        worker_rest.restart(endpoints.connect, config.name)
