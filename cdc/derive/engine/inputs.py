"""Reads the inputs of a query from the lake, each at the version of one cut."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.folds import find_states
from cdc.derive.engine.input import Input
from cdc.derive.engine.late_facts import declare_late_rows
from cdc.derive.engine.matches import find_matches
from cdc.derive.engine.restored import restore
from cdc.derive.late.late_rows import EFFECT
from cdc.events.names import OURS
from cdc.events.values.sql_text import fusion_name
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.tables import TableId


def load(
    calculator: Calculator, inputs: Mapping[TableId, DeltaTable], definition: Definition
) -> None:
    """Read the columns that the definition needs, of every input; find its matches or states.

    Afterwards its query can be calculated.
    """
    load_rows(calculator, inputs, definition)
    match(calculator, inputs, definition)


def load_rows(
    calculator: Calculator, inputs: Mapping[TableId, DeltaTable], definition: Definition
) -> None:
    """Read the columns that the definition needs, of every input."""
    for table, opened in inputs.items():
        if definition.reads(table):
            calculator.load(table, rows(opened, needed_columns(opened, definition)))


def match(
    calculator: Calculator, inputs: Mapping[TableId, DeltaTable], definition: Definition
) -> None:
    """Find what the query reads instead of its loaded inputs: matches, states, or nothing.

    Late rows that are put aside are taken out of the loaded ones.
    """
    late = definition.late
    if late is not None and late.policy == "aside":
        restore(calculator, late, key_of(inputs[late.table]))
    for table, opened in inputs.items():
        ties = key_of(opened) or needed_columns(opened, definition)
        find(calculator, table, definition, ties)


def find(
    calculator: Calculator, table: TableId, definition: Definition, ties: Sequence[str]
) -> None:
    """Find in a loaded table what the query reads instead of it: matches, states, or nothing.

    ``ties`` put rows into one order that are equal in the order of the definition.
    """
    if definition.pattern is not None:
        find_matches(calculator, table, definition.pattern, ties)
    if definition.late_rows is not None:
        declare_late_rows(calculator, definition.late_rows)
    if definition.fold is not None:
        find_states(calculator, table, definition.fold, ties)


def needed_columns(table: DeltaTable, definition: Definition) -> list[str]:
    """Return the columns without which the definition cannot be calculated.

    Where all of them decide between equal rows, these are all.
    """
    pattern, key = definition.pattern, key_of(table)
    if definition.fold is not None or (pattern is not None and not key):
        return columns(table)
    needed = [definition.duckdb]
    if definition.late is not None and definition.late.policy == "aside":
        if EFFECT in columns(table):
            return columns(table)
        needed += map(fusion_name, [definition.late.window.time, *key])
    if pattern is not None:
        needed += pattern.columns
        needed += map(fusion_name, [*pattern.partition, *pattern.order, *key])
    return used_columns(table, " ".join(needed))


def declare(calculator: Calculator, inputs: Mapping[TableId, Input]) -> None:
    """Create every input without rows, so that a query can be checked."""
    for table, one in inputs.items():
        opened = one.open()
        calculator.load(table, rows(opened, columns(opened), "LIMIT 0"))


def key_of(table: DeltaTable) -> list[str]:
    """Return the key of a captured table; empty if it has none, or is derived."""
    key: list[str] = json.loads(table.metadata().configuration.get(KEY_PROPERTY, "[]"))
    return key


def identity(table: DeltaTable) -> str:
    """Return what changes when a table is made anew, or gets another key.

    Without it, versions of two tables at one path could be taken for versions of one, and the key
    decides which of two rows at one time comes first in a pattern.
    """
    return f"{table.metadata().id} {' '.join(map(fusion_name, key_of(table)))}".strip()


def row_count(table: DeltaTable) -> int:
    """Return how many rows the table's files have, rows marked deleted included."""
    return sum(table.get_add_actions()["num_records"].to_pylist())


def columns(table: DeltaTable) -> list[str]:
    """Return the names of the columns that a definition sees."""
    return [field.name for field in table.schema().fields if not field.name.startswith(OURS)]


def used_columns(table: DeltaTable, query: str) -> list[str]:
    """Return the columns whose names occur in the query, at least one of them."""
    names = columns(table)
    used = [name for name in names if fusion_name(name)[1:-1].lower() in query.lower()]
    return used or names[:1]


def rows(table: DeltaTable, names: list[str], rest: str = "") -> pa.RecordBatchReader:
    """Return a stream of these columns of all rows."""
    listed = ", ".join(map(fusion_name, names))
    query = QueryBuilder().register("t", table).execute(f"SELECT {listed} FROM t {rest}")  # noqa: S608
    return pa.RecordBatchReader.from_stream(query)
