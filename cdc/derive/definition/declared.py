"""Read what a folder declares: the valid definitions in order, and the problems of the others."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdc.derive.definition.as_of_definition import over_histories
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.file_names import tables_of
from cdc.derive.definition.folder import read_definitions
from cdc.derive.definition.graph import in_order
from cdc.derive.definition.names import late_problems, unknown_inputs
from cdc.derive.sql.problem import Problem
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Holds the definitions that can be kept, each after its inputs, and problems of the others."""

    definitions: Sequence[Definition]
    problems: Sequence[tuple[TableId | None, Problem]]
    """The table that each problem keeps from being derived; None where a file names no table.

    A problem of a fold is there for each of its tables."""

    @property
    def distinct_problems(self) -> list[Problem]:
        """Return each problem once."""
        return list(dict.fromkeys(problem for _, problem in self.problems))

    @property
    def digests(self) -> dict[str, str]:
        """Return what a running job has to know of each definition, by its name as a setting."""
        return {
            f"derived.{one.table}": f"{one.hash} {one.refresh} {','.join(one.key)}"
            for one in self.definitions
        }


def declared(folder: Path, captured: Collection[TableId] | None) -> Declared:
    """Read the folder; without ``captured``, any table that is not derived may be a captured one.

    A definition over a refused one is refused too.
    """
    read, problems = read_definitions(folder)
    problems += late_problems(read)
    if captured is not None:
        invalid = (table for one in problems for table in tables_of(Path(one.file).name))
        problems += unknown_inputs(read, {*captured, *invalid})
    read, found = over_histories(read, {one.file for one in problems})
    problems += found
    refused = {one.file for one in problems}
    ordered, found = in_order([one for one in read if one.file not in refused])
    while found:
        problems += found
        refused = {one.file for one in problems}
        ordered, found = in_order([one for one in read if one.file not in refused])
    named = [(table, one) for one in sorted(set(problems)) for table in _tables_of(one)]
    valid, over = _valid(ordered, {table for table, _ in named if table is not None})
    return Declared(definitions=valid, problems=[*named, *over])


def _tables_of(problem: Problem) -> Sequence[TableId | None]:
    return tables_of(Path(problem.file).name) or (None,)


def _valid(
    ordered: Sequence[Definition], refused: set[TableId]
) -> tuple[list[Definition], list[tuple[TableId, Problem]]]:
    """Return the definitions that are not over a refused one, and a problem for each other."""
    valid, problems = [], []
    for one in ordered:
        wrong = [table for table in one.inputs if table in refused]
        if wrong:
            refused.add(one.table)
            line, column = dict(zip(one.inputs, one.places, strict=False)).get(wrong[0], (1, 1))
            message = f"its input {wrong[0]} is refused"
            problem = Problem(one.file, line, column, message, "correct that definition first")
            problems.append((one.table, problem))
        else:
            valid.append(one)
    return valid, problems
