"""The tables to keep: those that can be, and those that could be once and must not stop the rest.

At the first start every table that the patterns name has to be fit, or nothing begins. Later one
that is not is stopped alone, and one that is new waits until ``apply-config`` takes it in.
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
TAKE_IN: Final = "wal2lake apply-config takes it in, wal2lake plan shows how"


def captured_tables(
    connection: Connection, config: Config, known: Collection[TableId] = ()
) -> list[SourceTable]:
    """The tables the patterns name, in order of their names; ``known`` ones began earlier.

    Raises SOURCE_NOT_READY naming the first table that cannot be kept, why, and the remedy; a
    known one is returned with what makes it ``unfit``, also where the source has it no more. Where
    some are known, those that are not are left out.
    """
    catalog = inspect(connection, config)
    new = set(new_tables(catalog, known))
    about_new = [f for table in new for f in errors_of(table, catalog)]
    _refuse(found for found in refusals(catalog, config, known) if found not in about_new)
    return [found for found in wanted_of(catalog, config, known) if found.table not in new]


def wanted_tables(
    connection: Connection, config: Config, known: Collection[TableId]
) -> list[SourceTable]:
    """As ``captured_tables``, with the new ones, which have to be fit."""
    catalog = inspect(connection, config)
    _refuse(refusals(catalog, config, known))
    return wanted_of(catalog, config, known)


def wanted_of(catalog: Catalog, config: Config, known: Collection[TableId]) -> list[SourceTable]:
    """All that the patterns name, and the known ones that they named and that are gone."""
    kept = _kept(config, known)
    there = [_judged(table, catalog, kept) for table in catalog.tables]
    gone = kept - {table.table for table in there}
    found = [*(_gone(table, catalog) for table in gone), *there]
    return sorted(found, key=lambda found: found.table)


def refusals(catalog: Catalog, config: Config, known: Collection[TableId]) -> list[Finding]:
    """Errors that keep tables from being taken in; those of single known tables are none."""
    kept = _kept(config, known)
    return [f for f in catalog.findings if f.level is Level.ERROR and not _is_of_one(f, kept)]


def new_tables(catalog: Catalog, known: Collection[TableId]) -> list[TableId]:
    """Tables that the patterns name and that were not captured before; none at the first start."""
    return [table.table for table in catalog.tables if known and table.table not in known]


def errors_of(table: TableId, catalog: Catalog, known: Collection[TableId] = ()) -> list[Finding]:
    """What keeps the table from being followed; of a known one not what only a new one must be."""
    errors = (finding for finding in catalog.findings if finding.level is Level.ERROR)
    mine = (finding for finding in errors if _is_about(finding, table))
    return [finding for finding in mine if not (finding.of_new and table in known)]


def _kept(config: Config, known: Collection[TableId]) -> set[TableId]:
    return {table for table in known if matches(table, config.source.tables)}


def _refuse(findings: Iterable[Finding]) -> None:
    for finding in findings:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{finding.subject}: {finding.message}",
            remedy=finding.remedy,
        )


def _is_of_one(finding: Finding, kept: Collection[TableId]) -> bool:
    """Whether it is about a single table that must not keep the others from going on."""
    if finding.table is not None:
        return finding.table in kept
    return any(matches(table, [finding.subject]) for table in kept)


def _is_about(finding: Finding, table: TableId) -> bool:
    """The table, a column of it, or a pattern that is its name."""
    return finding.table == table if finding.table is not None else finding.subject == str(table)


def _judged(table: SourceTable, catalog: Catalog, kept: Collection[TableId]) -> SourceTable:
    if table.table not in kept:
        return table
    return replace(table, unfit=_first_error(table.table, catalog))


def _first_error(table: TableId, catalog: Catalog) -> Finding | None:
    """Of one that was taken in."""
    return next(iter(errors_of(table, catalog, [table])), None)


def _gone(table: TableId, catalog: Catalog) -> SourceTable:
    finding = _first_error(table, catalog) or Finding.error(
        str(table),
        "it was dropped in the source",
        remedy="take it out of source.tables, or create it again and let it be read again",
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
