"""Check the definitions of derived tables against each other and against the tables of the lake.

No server is asked, and Spark is not started. Before the first cut the types of the captured tables
are not known, and only what the definitions say of themselves is checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdc.config import Config
from cdc.derive.definition.at_time import ANY_TIME, at_time
from cdc.derive.definition.declared import Declared, declared
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import Calculator, calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import declare, find
from cdc.derive.engine.output_types import Output
from cdc.derive.engine.restored import declare_restored
from cdc.derive.late.shown import shown
from cdc.derive.sql.problem import Problem
from cdc.errors import CdcError
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTable:
    """Holds a valid definition and its result's columns; none while the inputs are not known."""

    definition: Definition
    outputs: Sequence[Output]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Holds the valid definitions, each after its inputs, and the problems of the others."""

    tables: Sequence[CheckedTable]
    problems: Sequence[Problem]


def check(config: Config) -> Checked:
    """Read and check every definition of ``derived.path``."""
    row = Ledger(ledger_path(config)).last()
    captured = None if row is None else [TableId.parse(entry.table) for entry in row.tables]
    found = declared(config.derived.path, captured)
    problems = found.distinct_problems
    if row is None:
        tables = [CheckedTable(definition=one, outputs=()) for one in found.definitions]
        return Checked(tables=tables, problems=problems)
    with calculator(config.derived.memory_mb) as database:
        binder = _Binder(database, row)
        tables = list(binder.bound(found))
    # Both tables of a fold may have found the same.
    return Checked(tables=tables, problems=list(dict.fromkeys([*problems, *binder.problems])))


class _Binder:
    """Finds out the types of every definition's columns, and which definitions have none."""

    def __init__(self, database: Calculator, row: LedgerRow) -> None:
        self._database, self._row = database, row
        self._declared: set[TableId] = set()
        self.problems: list[Problem] = []

    def bound(self, found: Declared) -> Iterator[CheckedTable]:
        """Yield the definitions that fit their inputs."""
        inputs = {table for one in found.definitions for table in one.inputs}
        for definition in found.definitions:
            try:
                outputs = self._outputs(definition)
            except CdcError as error:
                problem = Problem(definition.file, 1, 1, error.message, error.remedy)
                self.problems.append(problem)
            else:
                if definition.table in inputs:
                    self._declare_derived(definition.table, outputs)
                yield CheckedTable(definition=definition, outputs=outputs)

    def _outputs(self, definition: Definition) -> list[Output]:
        entries = {t: self._row.entry(str(t)) for t in definition.inputs if t not in self._declared}
        new = {
            table: Input.of(entry)
            for table, entry in entries.items()
            if entry is not None and entry.version >= 0
        }
        declare(self._database, new)
        self._declared |= set(new)
        for table in definition.inputs:
            find(self._database, table, definition, ())
        query, late = at_time(definition, ANY_TIME).duckdb, definition.late
        if late is not None and late.table in self._declared:
            declare_restored(self._database, late)
        return self._database.outputs(query if late is None else shown(late, query, None))

    def _declare_derived(self, table: TableId, outputs: Sequence[Output]) -> None:
        typed = ", ".join(f"CAST(NULL AS {one.type}) AS {one.quoted}" for one in outputs)
        self._database.load(table, self._database.rows(f"SELECT {typed} LIMIT 0"))
        self._declared.add(table)
