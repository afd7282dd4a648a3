"""The tables to keep: those that can be, and those that could be once and must not stop the rest.

At the first start every table that the patterns name has to be fit, or nothing begins. Later one
that is not is stopped alone, and one that is new waits: its rows are in no snapshot.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog import Catalog, SourceTable, inspect
from cdc.source.finding import Finding, Level
from cdc.source.postgres import Connection
from cdc.tables import TableId, TableMode, matches

NEW: Final = "is new since the first snapshot: its rows would not arrive"


def captured_tables(
    connection: Connection, config: Config, known: Collection[TableId] = ()
) -> list[SourceTable]:
    """The tables the patterns name, in order of their names; ``known`` ones began earlier.

    Raises SOURCE_NOT_READY naming the first table that cannot be kept, why, and the remedy; a
    known one is returned with what makes it ``unfit``, also where the source has it no more.
    """
    catalog = inspect(connection, config)
    kept = {table for table in known if matches(table, config.source.tables)}
    for finding in catalog.findings:
        if finding.level is Level.ERROR and not _waits(finding, catalog, config, kept):
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{finding.subject}: {finding.message}",
                remedy=finding.remedy,
            )
    there = [_judged(table, catalog, kept) for table in catalog.tables]
    gone = kept - {table.table for table in there}
    new = set(new_tables(catalog, config, kept))
    found = [*(_gone(table, catalog) for table in gone), *there]
    return sorted((t for t in found if t.table not in new), key=lambda found: found.table)


def new_tables(catalog: Catalog, config: Config, known: Collection[TableId]) -> list[TableId]:
    """Tables that only match a pattern, and did not yet when the first snapshot was taken."""
    if not known:
        return []
    tables = (table.table for table in catalog.tables)
    return [table for table in tables if table not in known and not _named(table, config)]


def _named(table: TableId, config: Config) -> bool:
    return str(table) in config.source.tables


def _waits(finding: Finding, catalog: Catalog, config: Config, kept: Collection[TableId]) -> bool:
    """Whether it is about a single table that must not keep the others from going on."""
    if any(matches(table, [finding.subject]) for table in kept):
        return True
    waiting = {*kept, *new_tables(catalog, config, kept)}
    return any(_is_about(finding, table) for table in waiting)


def _is_about(finding: Finding, table: TableId) -> bool:
    """The table or a column of it."""
    return finding.subject == str(table) or finding.subject.startswith(f"{table}.")


def _judged(table: SourceTable, catalog: Catalog, kept: Collection[TableId]) -> SourceTable:
    if table.table not in kept:
        return table
    return replace(table, unfit=_first_error(table.table, catalog))


def _first_error(table: TableId, catalog: Catalog) -> Finding | None:
    errors = (finding for finding in catalog.findings if finding.level is Level.ERROR)
    return next((finding for finding in errors if _is_about(finding, table)), None)


def _gone(table: TableId, catalog: Catalog) -> SourceTable:
    finding = _first_error(table, catalog) or Finding.error(
        str(table),
        "the source has this table no more",
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
