"""Collect from source, servers, lake and job what ``plan`` compares, without changing anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from deltalake import DeltaTable

from cdc.capture.bootstrap import captured_by_connector
from cdc.capture.change_captured import settings_for
from cdc.capture.topic_specs import topic_specs
from cdc.client.derived.at_source import refused_by_source
from cdc.client.plan import LeftOut, Now, Plan, PlanFinding, Wanted, WantedTable, compare
from cdc.config import Config
from cdc.derive.definition.declared import declared
from cdc.derive.sql.problem import Problem
from cdc.errors import CdcError
from cdc.kafka.topics import topic_ids
from cdc.lake.layout import ledger_path, table_path
from cdc.lake.records.ledger import Ledger
from cdc.lake.table.positions import UNREAD, file_sizes, open_table
from cdc.source.catalog.captured import errors_of, refusals, wanted_of
from cdc.source.catalog.catalog import Catalog, SourceTable, inspect
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import clear_password
from cdc.source.server.connection import Connection, connect, translated
from cdc.source.server.finding import Finding, Level
from cdc.source.setup.preflight import role_findings, server_findings
from cdc.source.setup.prepare import publication_tables
from cdc.state import job_settings
from cdc.state.pipeline import Pipeline
from cdc.tables import HEARTBEAT, STRUCTURE, TableId

_SIZES: Final = """
SELECT c.oid, c.reltuples::bigint, pg_table_size(c.oid) FROM pg_class c WHERE c.oid = ANY(%s)
"""
_CONTROL: Final = (HEARTBEAT, STRUCTURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Holds what is read once and used by every step of a plan."""

    pipeline: Pipeline
    connection: Connection
    catalog: Catalog
    known: frozenset[TableId]
    running: Mapping[str, str]  # the connector's settings

    @property
    def tables(self) -> list[SourceTable]:
        """Return the tables that the configuration asks for."""
        return wanted_of(self.catalog, self.pipeline.config, self.known)

    @property
    def fit(self) -> tuple[SourceTable, ...]:
        """Return the wanted tables that can be followed."""
        return tuple(
            table
            for table in self.tables
            if table.unfit is None and not errors_of(table.table, self.catalog, self.known)
        )


def plan(pipeline: Pipeline) -> Plan:
    """Return what ``apply-config`` would change.

    Raises UNREACHABLE for a server that does not answer, CONFLICT for a publication of somebody
    else.
    """
    with connect(pipeline.endpoints.source_url) as connection:
        look = _Look(
            pipeline=pipeline,
            connection=connection,
            catalog=inspect(connection, pipeline.config),
            known=captured_by_connector(pipeline),
            running=worker_rest.configuration(pipeline.endpoints.connect, pipeline.name) or {},
        )
        wanted = _wanted(look)
        return compare(_now(look, wanted), wanted)


def sizes(config: Config, tables: Iterable[TableId]) -> dict[str, int]:
    """Return the size in bytes of the newest version of each Delta table that exists."""
    opened = {str(table): _opened(config, table) for table in tables}
    return {name: size(table) for name, table in opened.items() if table is not None}


def size(table: DeltaTable) -> int:
    """Return the bytes of the data files of the table's newest version."""
    return sum(file_sizes(table))


def read_tables(config: Config) -> dict[str, bool] | None:
    """Return for each table of the newest cut whether its rows are in the lake.

    Returns None before the first cut.
    """
    row = Ledger(ledger_path(config)).last()
    return None if row is None else {entry.table: entry.reading != UNREAD for entry in row.tables}


def _opened(config: Config, table: TableId) -> DeltaTable | None:
    try:
        return open_table(table_path(config, table))
    except CdcError:
        return None  # the table's name cannot be the name of a directory


def _wanted(look: _Look) -> Wanted:
    config, tables = look.pipeline.config, look.tables
    server = server_findings(look.connection)
    server += role_findings(look.connection, config, look.fit)
    errors = [finding for finding in server if finding.level is Level.ERROR]
    sizes_by_oid = _sizes_by_oid(look.connection, tables)
    wanted = [_table(table, look, errors, sizes_by_oid) for table in tables]
    of_tables = {refusal.subject for table in wanted for refusal in table.refused}
    others = [*refusals(look.catalog, config, look.known), *errors]
    definitions = declared(config.derived.path, {table.table for table in tables})
    return Wanted(
        tables=tuple(wanted),
        publication=frozenset(map(str, (*_CONTROL, *(table.table for table in look.fit)))),
        topics=frozenset(spec.name for spec in topic_specs(config, tables)),
        settings=settings_for(look.pipeline, tables, look.running),
        job=job_settings.digests(config, definitions.digests),
        refused=(
            *(_finding(other) for other in others if other.subject not in of_tables),
            *map(_undefined, definitions.distinct_problems),
            *map(_undefined, refused_by_source(look.connection, definitions.definitions)),
        ),
        warned=tuple(map(_finding, filter(None, [clear_password(look.pipeline)]))),
    )


def _undefined(problem: Problem) -> PlanFinding:
    return PlanFinding(subject=problem.where, message=problem.message, remedy=problem.remedy)


def _now(look: _Look, wanted: Wanted) -> Now:
    config = look.pipeline.config
    names = publication_tables(look.connection, config.name)
    return Now(
        captured=frozenset(map(str, look.known)),
        ledger=read_tables(config),
        lake=sizes(config, {*look.known, *(table.table for table in look.tables)}),
        publication=None if names is None else frozenset(map(str, names)),
        topics=frozenset(topic_ids(look.pipeline.endpoints.kafka, sorted(wanted.topics))),
        settings=look.running,
        job=job_settings.remembered(config.state_dir),
    )


def _table(
    table: SourceTable,
    look: _Look,
    errors: list[Finding],
    sizes_by_oid: dict[int, tuple[int | None, int]],
) -> WantedTable:
    name = str(table.table)
    rows, on_disk = sizes_by_oid.get(table.oid, (None, 0))
    of_role = [error for error in errors if error.subject == name]
    unfit = [table.unfit] if table.unfit else []
    of_catalog = errors_of(table.table, look.catalog, look.known) or unfit
    return WantedTable(
        table=name,
        mode=table.mode.value,
        key=table.key,
        rows=rows,
        bytes=on_disk,
        left_out=tuple(
            LeftOut(column=column.name, reason=column.reason)
            for column in table.columns
            if not column.arrives
        ),
        refused=tuple(map(_finding, (*of_catalog, *of_role))),
    )


def _sizes_by_oid(
    connection: Connection, tables: list[SourceTable]
) -> dict[int, tuple[int | None, int]]:
    """Return by OID the rows as of the last ANALYZE (None before the first) and the bytes."""
    with translated("asking for the sizes of the tables"):
        rows = connection.execute(_SIZES, ([table.oid for table in tables],)).fetchall()
    return {oid: (None if count < 0 else count, total) for oid, count, total in rows}


def _finding(finding: Finding) -> PlanFinding:
    return PlanFinding(subject=finding.subject, message=finding.message, remedy=finding.remedy)
