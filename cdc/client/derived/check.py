"""Check the definitions of derived tables against each other and against the tables of the lake.

No server is asked, and Spark is not started. Before the first cut the types of the captured tables
are not known, and only what the definitions say of themselves is checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc.config import Config
from cdc.derive.definition.declared import Declared, declared
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import Calculator, calculator
from cdc.derive.engine.inputs import Input, declare
from cdc.derive.engine.output_types import Output
from cdc.derive.sql.problem import Problem
from cdc.errors import CdcError
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTable:
    """A valid definition and the columns of its result; none where the inputs are not known yet."""

    definition: Definition
    outputs: Sequence[Output]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The valid definitions, each after its inputs, and the problems of the others."""

    tables: Sequence[CheckedTable]
    problems: Sequence[Problem]


def check(config: Config) -> Checked:
    """Read and check every definition of ``derived.path``."""
    row = Ledger(ledger_path(config)).last()
    captured = None if row is None else [TableId.parse(entry.table) for entry in row.tables]
    found = declared(config.derived.path, captured)
    problems = [problem for _, problem in found.problems]
    if row is None:
        tables = [CheckedTable(definition=one, outputs=()) for one in found.definitions]
        return Checked(tables=tables, problems=problems)
    binder = _Binder(row, config.derived.memory_mb)
    tables = list(binder.bound(found))
    return Checked(tables=tables, problems=[*problems, *binder.problems])


class _Binder:
    """Finds out the types of every definition's columns, and which definitions have none."""

    def __init__(self, row: LedgerRow, memory_mb: int) -> None:
        self._row, self._memory_mb = row, memory_mb
        self._known: dict[TableId, Sequence[Output]] = {}
        self.problems: list[Problem] = []

    def bound(self, found: Declared) -> Iterator[CheckedTable]:
        """Yield the definitions that fit their inputs."""
        for definition in found.definitions:
            try:
                outputs = self._outputs(definition)
            except CdcError as error:
                problem = Problem(definition.file, 1, 1, error.message, error.remedy)
                self.problems.append(problem)
            else:
                self._known[definition.table] = outputs
                yield CheckedTable(definition=definition, outputs=outputs)

    def _outputs(self, definition: Definition) -> list[Output]:
        with calculator(self._memory_mb) as database:
            declare(database, _inputs(definition, self._row, self._known))
            for table in definition.inputs:
                if table in self._known:
                    _declare_derived(database, table, self._known[table])
            return database.outputs(definition.duckdb)


def _inputs(
    definition: Definition, row: LedgerRow, known: Mapping[TableId, object]
) -> dict[TableId, Input]:
    entries = {t: row.entry(str(t)) for t in definition.inputs if t not in known}
    return {
        table: Input(entry.path, entry.version)
        for table, entry in entries.items()
        if entry is not None and entry.version >= 0
    }


def _declare_derived(database: Calculator, table: TableId, outputs: Sequence[Output]) -> None:
    typed = ", ".join(f"CAST(NULL AS {one.type}) AS {one.quoted}" for one in outputs)
    database.load(table, database.rows(f"SELECT {typed} LIMIT 0"))
