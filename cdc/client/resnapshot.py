"""Prepare a resnapshot before the job is asked: the tables, the predicate and the forecast."""

from collections.abc import Sequence
from dataclasses import dataclass

from cdc.client.forecast import Forecast, forecast, refuse_full
from cdc.client.selection import ExistingTables, Selection, TableChoice, refuse_where, selected
from cdc.client.status import components
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import epochs_path, ledger_path, operations_path
from cdc.lake.records.epochs import last as last_epoch
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.operations import Operations
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.catalog.relations import tables_of
from cdc.source.predicate.postgres_check import estimated_rows, predicate
from cdc.source.predicate.predicate import Predicate
from cdc.source.server.connection import Connection, connect
from cdc.source.setup.prepare import publication_tables
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class ResnapshotRequest:
    """Describes a resnapshot as the command line does, checked against source and lake."""

    selection: Selection
    where: str  # the predicate; empty for whole tables
    forecast: Forecast


def prepare(
    pipeline: Pipeline, choice: TableChoice, *, where: str | None, shadow: bool
) -> ResnapshotRequest:
    """Return the resnapshot that is asked for, without changing anything.

    Raises CONFIG for invalid tables or an invalid predicate, SOURCE_NOT_READY for a table that
    cannot be read, and the errors of a source that cannot be reached.
    """
    config = pipeline.config
    last = Ledger(ledger_path(config)).last()
    states = {entry.table: entry.state for entry in last.tables} if last else {}
    with connect(pipeline.endpoints.source_url) as connection:
        sources = captured_tables(connection, config, [TableId.parse(name) for name in states])
        tables = ExistingTables(
            states=states or _states_before_a_cut(config, sources),
            captured={source.table for source in sources},
            source=tables_of(connection),
        )
        selection = selected(choice, tables)
        by_name = {source.table: source for source in sources}
        chosen = [by_name[table] for table in selection.tables]
        _refuse_unfit(connection, config, chosen)
        part = None
        if where is not None:
            modes = {source.table: source.mode for source in sources}
            refuse_where(selection, states, modes, shadow=shadow)
            part = _predicate(connection, chosen[0], where)
        past = Operations(operations_path(config)).rows()
        expected = forecast(
            config, connection, "resnapshot", selection.tables, past=past, predicate=part
        )
    return ResnapshotRequest(
        selection=selection, where=part.text if part else "", forecast=expected
    )


def _states_before_a_cut(config: Config, sources: Sequence[SourceTable]) -> dict[str, str]:
    """Return the tables' states while no cut is published.

    During the first snapshot there are none; after a new epoch every table waits to be read.
    """
    if last_epoch(epochs_path(config)) is None:
        return {}
    return {str(source.table): TableState.STOPPED.value for source in sources}


def refuse_now(pipeline: Pipeline, expected: Forecast) -> None:
    """Refuse a resnapshot that could not end now.

    Raises DISK_FULL without enough free space, UNREACHABLE when the Connect worker does not answer,
    SERVER_FAILED when the connector is not running.
    """
    refuse_full(expected)
    connector = components.connector(pipeline.endpoints.connect, pipeline.name)
    if connector.state not in {"RUNNING", "UNASSIGNED"}:
        raise CdcError(
            ErrorKind.SERVER_FAILED,
            f"the connector is {connector.state}, so the job cannot publish the cut to read at",
            detail=connector.reason,
            remedy="see wal2lake status and wal2lake check",
        )


def _predicate(connection: Connection, source: SourceTable, where: str) -> Predicate:
    part = predicate(connection, source.table, source.columns, where)
    estimated_rows(connection, source.table, part)
    return part


def _refuse_unfit(connection: Connection, config: Config, sources: Sequence[SourceTable]) -> None:
    publication = publication_tables(connection, config.name) or set()
    for source in sources:
        if source.unfit is not None:
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{source.table}: {source.unfit.message}",
                remedy=source.unfit.remedy,
            )
        if source.table not in publication:
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"publication {config.name} has no table {source.table}: changes after the reading "
                "would not arrive",
                remedy=f"ALTER PUBLICATION {config.name} ADD TABLE {source.table}",
            )
