"""Find the scope of a definition, of whatever kind it is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from cdc.derive.definition.definition import Definition
from cdc.derive.scope.reading import scope_of
from cdc.derive.scope.scope import SCHEMA, Branch, Occurrence, Scope, Whole, column, restricted
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId


def definition_scope(
    definition: Definition, columns: Mapping[TableId, Sequence[str]]
) -> Scope | Whole:
    """Return the scope of a definition over tables with these columns."""
    if definition.history is not None:
        return Whole("it is kept by the events of its table")
    if definition.refresh == "full":
        return Whole("its definition says refresh: full")
    if definition.is_timed:
        return Whole("cut_time() differs at each cut")
    if definition.pattern is not None:
        return _of_rows(definition, definition.pattern.partition)
    if definition.fold is not None:
        return _of_rows(definition, definition.fold.stream)
    return _of_query(definition, tuple((t, tuple(names)) for t, names in columns.items()))


@lru_cache(maxsize=256)
def _of_query(
    definition: Definition, columns: tuple[tuple[TableId, tuple[str, ...]], ...]
) -> Scope | Whole:
    """Return the scope of a query; it takes milliseconds, and every step asks for it."""
    if definition.query is None:
        return Whole("it is no query")
    late = definition.late
    if late is not None and late.policy == "aside":
        return Whole("its late rows are put aside")
    found = scope_of(definition.query, definition.key, dict(columns))
    if isinstance(found, Scope) and late is not None:
        return replace(found, by_row="")  # rows change without an input: they become final
    return found


def _of_rows(definition: Definition, partition: Sequence[str]) -> Scope | Whole:
    """The matches of a partition, and the state of a stream, depend on its rows alone."""
    if not partition or not set(partition) <= set(definition.columns):
        return Whole("its pattern has no PARTITION BY")
    (table,) = definition.inputs
    listed = ", ".join(
        f"{postgres_name(name)} AS {column(number)}" for number, name in enumerate(partition)
    )
    reached = f"SELECT DISTINCT {listed} FROM {SCHEMA}.{restricted(0)}"  # noqa: S608 - checked names
    occurrences = (Occurrence(table=table, name=table.name),)
    branch = Branch(occurrences=occurrences, links=(), reached=reached, is_inner=True)
    return Scope(columns=tuple(partition), branches=(branch,), query=definition.duckdb)
