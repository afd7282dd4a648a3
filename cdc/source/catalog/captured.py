"""Choose the tables to capture from the catalogue.

At the first start every table that matches the patterns must be fit, or nothing starts. Later, an
unfit table is stopped alone, and a new table waits until ``apply-config`` adds it. A table is
*known* if it was captured before.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.catalog import Catalog, SourceTable, inspect
from cdc.source.server.connection import Connection
from cdc.source.server.finding import Finding, Level
from cdc.tables import TableId, TableMode, matches

NEW: Final = "is new: it is not in the lake yet"
TAKE_IN: Final = "run wal2lake apply-config to add it; wal2lake plan shows the steps first"


def captured_tables(
    connection: Connection, config: Config, known: Collection[TableId] = ()
) -> list[SourceTable]:
    """Return the tables to capture, sorted by name.

    If some tables are ``known``, new ones are left out. A known table that is unfit, or that the
    source no longer has, is returned with its ``unfit`` finding. Raises SOURCE_NOT_READY for the
    first error that is not about a single known table or a new one, and like ``inspect``.
    """
    catalog = inspect(connection, config)
    new = set(new_tables(catalog, known))
    about_new = [f for table in new for f in errors_of(table, catalog)]
    _refuse(f for f in refusals(catalog, config, known) if f not in about_new)
    return [table for table in wanted_of(catalog, config, known) if table.table not in new]


def wanted_tables(
    connection: Connection, config: Config, known: Collection[TableId]
) -> list[SourceTable]:
    """Return the tables like ``captured_tables``, including new ones, which must be fit.

    Raises SOURCE_NOT_READY if a new table is not fit.
    """
    catalog = inspect(connection, config)
    _refuse(refusals(catalog, config, known))
    return wanted_of(catalog, config, known)


def wanted_of(catalog: Catalog, config: Config, known: Collection[TableId]) -> list[SourceTable]:
    """Return all tables matching the patterns, and known ones that match but no longer exist."""
    captured = _captured(config, known)
    existing = [_judged(table, catalog, captured) for table in catalog.tables]
    gone = captured - {table.table for table in existing}
    tables = [*(_gone(table, catalog) for table in gone), *existing]
    return sorted(tables, key=lambda table: table.table)


def refusals(catalog: Catalog, config: Config, known: Collection[TableId]) -> list[Finding]:
    """Return the errors that prevent a start; errors about single known tables do not."""
    captured = _captured(config, known)
    errors = (finding for finding in catalog.findings if finding.level is Level.ERROR)
    return [finding for finding in errors if not _is_of_one(finding, captured)]


def new_tables(catalog: Catalog, known: Collection[TableId]) -> list[TableId]:
    """Return matching tables that were not captured before; an empty list at the first start."""
    return [table.table for table in catalog.tables if known and table.table not in known]


def errors_of(table: TableId, catalog: Catalog, known: Collection[TableId] = ()) -> list[Finding]:
    """Return the errors about a table. A known table is exempt from rules for new tables."""
    errors = (finding for finding in catalog.findings if finding.level is Level.ERROR)
    about = (finding for finding in errors if _is_about(finding, table))
    return [finding for finding in about if not (finding.of_new and table in known)]


def _captured(config: Config, known: Collection[TableId]) -> set[TableId]:
    return {table for table in known if matches(table, config.source.tables)}


def _refuse(findings: Iterable[Finding]) -> None:
    for finding in findings:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{finding.subject}: {finding.message}",
            remedy=finding.remedy,
        )


def _is_of_one(finding: Finding, captured: Collection[TableId]) -> bool:
    """Return whether it concerns a single captured table, which must not stop the others."""
    if finding.table is not None:
        return finding.table in captured
    return any(matches(table, [finding.subject]) for table in captured)


def _is_about(finding: Finding, table: TableId) -> bool:
    """Return whether it is about the table, a column of it, or a pattern equal to its name."""
    return finding.table == table if finding.table is not None else finding.subject == str(table)


def _judged(table: SourceTable, catalog: Catalog, captured: Collection[TableId]) -> SourceTable:
    if table.table not in captured:
        return table
    return replace(table, unfit=_first_error(table.table, catalog))


def _first_error(table: TableId, catalog: Catalog) -> Finding | None:
    """Return the first error about a known table."""
    return next(iter(errors_of(table, catalog, [table])), None)


def _gone(table: TableId, catalog: Catalog) -> SourceTable:
    finding = _first_error(table, catalog) or Finding.error(
        str(table),
        "it was dropped in the source",
        remedy="remove it from source.tables, or create it again and resnapshot it",
    )
    return SourceTable(
        table=table,
        oid=0,
        columns=(),
        key=(),
        mode=TableMode.KEYED,
        replica_identity="d",
        unfit=finding,
    )
