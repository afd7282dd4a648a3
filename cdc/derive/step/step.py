"""Brings one derived table to a cut: calculates its query, and commits only what differs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.inputs import Input, load, row_count, rows
from cdc.derive.step.commit import commit
from cdc.derive.step.difference import Difference, difference
from cdc.derive.step.mark import Mark
from cdc.derive.step.upkeep import keep_small
from cdc.errors import CdcError, ErrorKind
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.lake.table.positions import open_table
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one step may take."""

    memory_mb: int
    full_rows: int
    kept_hours: int  # how long the files of old versions are kept
    scratch: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step did; the table has its rows at ``version``."""

    version: int
    rows: int
    added: int
    removed: int


def bring(
    definition: Definition,
    inputs: Mapping[TableId, Input],
    path: str,
    mark: Mark,
    limits: Limits,
    *,
    anew: bool = False,
) -> Step:
    """Make the table at ``path`` equal to the definition's query over the inputs.

    One commit has the difference and the mark; there is none if nothing differs. With ``anew`` it
    has all rows, and whatever was there is replaced. Raises TABLE_STOPPED where the query fails or
    is larger than the definition allows, and CONFIG where it does not fit its inputs. The table
    stays as it is then.
    """
    opened = {table: one.open() for table, one in inputs.items()}
    _refuse_large(definition, opened.values(), limits)
    with calculator(limits.memory_mb, limits.scratch) as database:
        load(database, opened, definition)
        outputs = database.outputs(definition.duckdb)
        mark = replace(mark, columns={output.name: output.type for output in outputs})
        stored = None if anew else _stored(path, mark)
        handles = None if stored is None else rows(stored, [ROW_HASH, COPY])
        found = difference(database, definition.duckdb, outputs, definition.key, handles)
    if stored is not None and not len(found.changes):
        return _step(stored.version(), found)
    commit(path, stored, found, mark, limits.kept_hours)
    return _step(keep_small(path, mark.properties(), limits.kept_hours), found)


def _stored(path: str, mark: Mark) -> DeltaTable | None:
    """Return the table; None if it is not there, or has rows of another definition."""
    table = open_table(path)
    return table if table is not None and mark.is_of(table) else None


def _refuse_large(definition: Definition, inputs: Iterable[DeltaTable], limits: Limits) -> None:
    if definition.refresh != "incremental":
        return
    total = sum(map(row_count, inputs))
    if total > limits.full_rows:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"its inputs have {total:,} rows, and it can only be calculated as a whole",
            remedy="set refresh: full in the definition, or raise derived.full_rows",
        )


def _step(version: int, found: Difference) -> Step:
    return Step(version=version, rows=found.rows, added=found.added, removed=found.removed)
