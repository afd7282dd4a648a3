"""Calculates what changed rows of the inputs lead to, and nothing else of a derived table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.engine.output_types import Output
from cdc.derive.late.rule import FINAL
from cdc.derive.scope.scope import DIRTY, SCHEMA, Scope, column
from cdc.derive.step.changes import Changes, keep_changes
from cdc.derive.step.difference import Difference, difference, scoped_difference
from cdc.derive.step.reach import find_dirty
from cdc.derive.step.row_by_row import row_difference
from cdc.events.values.sql_text import postgres_name
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Describes a derived table as it is, and how the rest of its calculation is done."""

    outputs: Sequence[Output]
    stored: str
    """Names the table of all its rows: digests, copies, and the columns that ``stored_columns``
    returns."""
    match: Callable[[], None]
    """Finds the matches of a pattern, or the states of a fold, in the rows that are left."""
    most_keys: int
    """With more values of the scope key than these, all rows are calculated: it is cheaper."""
    asked: Callable[[str], str] = str
    """Returns a query of the definition with what its watermark adds."""
    closing: str = ""
    """What to select from for the rows that change though no input does; empty if none do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalculated:
    """Says what differs, and how many values of the scope key were calculated for it."""

    difference: Difference
    keys: int
    is_whole: bool  # all rows were calculated


def recalculate(
    database: Calculator,
    definition: Definition,
    scope: Scope,
    changes: Changes,
    kept: Kept,
) -> Recalculated:
    """Compare the rows that the changes lead to with those that are there.

    The inputs are loaded as they are now.
    """
    if scope.by_row and changes.are_of(definition.inputs):
        return _row_by_row(database, definition, scope, kept)
    changed = keep_changes(database, changes)
    types = {output.name: output for output in kept.outputs}
    columns = [types[name] for name in scope.columns]
    keys = find_dirty(database, scope, columns, changed, kept.closing)
    if keys > kept.most_keys:
        kept.match()
        query, key = kept.asked(definition.duckdb), definition.key
        found = difference(database, query, kept.outputs, key, kept.stored)
        return Recalculated(difference=found, keys=keys, is_whole=True)
    if definition.query is None:
        _leave_dirty(database, scope, definition.inputs[0])
        kept.match()
    found = scoped_difference(
        database,
        kept.asked(scope.query),
        kept.outputs,
        definition.key,
        scope=scope.columns,
        stored=kept.stored,
    )
    return Recalculated(difference=found, keys=keys, is_whole=False)


def _row_by_row(
    database: Calculator, definition: Definition, scope: Scope, kept: Kept
) -> Recalculated:
    """Calculate the query for the changed rows alone."""
    (table,) = definition.inputs
    found = row_difference(
        database, scope.by_row, kept.outputs, definition.key, table=table, stored=kept.stored
    )
    return Recalculated(difference=found, keys=len(found.changes), is_whole=False)


def stored_columns(definition: Definition, scope: Scope) -> tuple[str, ...]:
    """Return the columns of the stored rows that a step compares."""
    late = definition.late
    waiting = [] if late is None or late.emits_final else [late.shown, FINAL]
    return tuple(dict.fromkeys([ROW_HASH, COPY, *scope.columns, *definition.key, *waiting]))


def _leave_dirty(database: Calculator, scope: Scope, table: TableId) -> None:
    """Delete the rows of all other partitions from the loaded table."""
    equal = " AND ".join(
        f"d.{column(number)} IS NOT DISTINCT FROM {named(table)}.{postgres_name(name)}"
        for number, name in enumerate(scope.columns)
    )
    dirty = f"SELECT TRUE FROM {SCHEMA}.{DIRTY} AS d WHERE {equal}"  # noqa: S608 - checked names
    database.run(f"DELETE FROM {named(table)} WHERE NOT EXISTS ({dirty})")  # noqa: S608
