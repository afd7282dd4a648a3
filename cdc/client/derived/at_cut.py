"""Calculate the query of a derived table at a published cut, and write nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from cdc.client.read.published import cut_at
from cdc.config import Config
from cdc.derive.definition.at_time import at_time
from cdc.derive.definition.declared import declared
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import Calculator, calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import load
from cdc.derive.step.difference import typed
from cdc.derive.step.judged import query_at
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.upkeep.held import held
from cdc.tables import TableId

_LATER: Final = "choose a later cut; wal2lake cuts lists them"


def definitions(config: Config, row: LedgerRow) -> dict[TableId, Definition]:
    """Return the definitions that can be kept, each after its inputs and with the cut's time.

    Raises CONFIG, with its place and remedy, for the first problem of any of them.
    """
    captured = [TableId.parse(entry.table) for entry in row.tables]
    found = declared(config.derived.path, captured)
    for _, problem in found.problems:
        raise problem.error()
    return {one.table: at_time(one, row.committed_at) for one in found.definitions}


def timed_tables(config: Config, row: LedgerRow) -> set[str]:
    """Return the tables of the cut whose rows depend on its time, as their definitions are now."""
    kept = {(entry.table, entry.definition) for entry in row.derived}
    found = declared(config.derived.path, [TableId.parse(entry.table) for entry in row.tables])
    timed = {(str(one.table), one.hash) for one in found.definitions if one.is_timed}
    return {name for name, _ in timed & kept}


def one_of(known: Mapping[TableId, Definition], name: str) -> Definition:
    """Return the definition of this name; raises CONFIG if there is none."""
    table = TableId.parse(name)
    if table not in known:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{name} is not a derived table",
            remedy=f"choose one of: {', '.join(map(str, known)) or 'none is defined'}",
        )
    return known[table]


def published_row(config: Config, at: str | None) -> LedgerRow:
    """Return the row of the cut; raises CONFIG if nothing is published yet."""
    row = cut_at(Ledger(ledger_path(config)), at)
    if row is None:
        raise CdcError(
            ErrorKind.CONFIG,
            "nothing is published yet",
            remedy="wait for the first cut with wal2lake sync",
        )
    return row


def preview(config: Config, name: str, at: str | None, limit: int) -> tuple[LedgerRow, pa.Table]:
    """Return the cut and the first rows of the definition's query at it."""
    with held(config.lake.path):
        row = published_row(config, at)
        definition = one_of(definitions(config, row), name)
        if definition.history is not None:
            raise CdcError(
                ErrorKind.CONFIG,
                f"{name} is a history, which follows from events and not from a query",
                remedy="read what the job has kept, by wal2lake sql or cdc.read",
            )
        _refuse_late_rows(definition)
        with calculated(config, definition, row) as (database, query):
            return row, database.rows(f"{query} LIMIT {limit:d}")


@contextmanager
def calculated(
    config: Config, definition: Definition, row: LedgerRow
) -> Iterator[tuple[Calculator, str]]:
    """Give a database that has the inputs of the definition at the cut, and its query there."""
    refuse_timeless(definition, row)
    inputs = {table: input_at(table, row).open() for table in definition.inputs}
    with calculator(config.derived.memory_mb) as database:
        load(database, inputs, definition)
        query = query_at(definition, inputs)
        yield database, typed(query, database.outputs(query))


def refuse_timeless(definition: Definition, row: LedgerRow) -> None:
    """Raise CONFIG for a table that depends on the time of a cut that has none."""
    if definition.is_timed and row.committed_at is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no commit, and cut_time() no value in {definition.table}",
            remedy=_LATER,
        )


def _refuse_late_rows(definition: Definition) -> None:
    if definition.late_rows is not None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{definition.table} has no query: its rows follow from the log",
            remedy="read it, or see wal2lake derived late",
        )


def input_at(table: TableId, row: LedgerRow) -> Input:
    """Return the input at the cut; raises CONFIG if the cut has no rows of it."""
    entry = row.readable(str(table))
    if entry is None or entry.version < 0:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no rows of {table}",
            remedy=_LATER,
        )
    return Input.of(entry)
