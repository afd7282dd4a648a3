"""Check the names of derived tables and of their inputs against the captured tables."""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from cdc.derive.definition.definition import Definition
from cdc.derive.sql.problem import Place, Problem
from cdc.tables import TableId


def unknown_inputs(
    definitions: Sequence[Definition], captured: Collection[TableId]
) -> list[Problem]:
    """Return a problem for each input that is neither captured nor derived, and each taken name."""
    known = {*captured, *(each.table for each in definitions)}
    problems = [_taken(each) for each in definitions if each.table in captured]
    for each in definitions:
        problems.extend(_unknown(each, known))
        problems.extend(_without_log(each, known - set(captured)))
    return sorted(problems)


def late_problems(definitions: Sequence[Definition]) -> list[Problem]:
    """Return a problem for each rule of lateness over a table that has no log, a derived one."""
    derived = {each.table for each in definitions}
    return [
        Problem(each.file, *each.places[-1], what, "derive it over the captured table itself")
        for each in definitions
        if each.late is not None and each.late.table in derived
        for what in [f"late: {each.late.table} is derived, and only a captured table has a log"]
    ]


def _taken(definition: Definition) -> Problem:
    what = f"{definition.table} is a captured table"
    return Problem(definition.file, 1, 1, what, "give the file another name")


def _without_log(definition: Definition, derived: Collection[TableId]) -> Iterator[Problem]:
    """Yield a problem for the history of a table that has no events."""
    if definition.history is not None and definition.inputs[0] in derived:
        what = f"{definition.inputs[0]} is a derived table, and a history is of a captured one"
        yield Problem(definition.file, 1, 1, what, "name a captured table")


def _unknown(definition: Definition, known: Collection[TableId]) -> Iterator[Problem]:
    places: dict[TableId, Place] = dict(zip(definition.inputs, definition.places, strict=False))
    for table in definition.inputs:
        if table not in known:
            near = get_close_matches(str(table), sorted(map(str, known)), n=1)
            remedy = f"did you mean {near[0]}?" if near else "capture it, or derive it"
            line, column = places.get(table, (1, 1))
            yield Problem(definition.file, line, column, f"no table {table}", remedy)
