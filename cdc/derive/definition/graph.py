"""Put derived tables into an order in which each comes after its inputs."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

from cdc.derive.definition.definition import Definition
from cdc.derive.sql.problem import Problem
from cdc.tables import TableId

MOST_TABLES: Final = 50
DEEPEST: Final = 8


def in_order(definitions: Sequence[Definition]) -> tuple[list[Definition], list[Problem]]:
    """Return the definitions in order, with none if there is a circle, and the problems."""
    known = {each.table: each for each in definitions}
    graph = {each.table: {i for i in each.inputs if i in known} for each in definitions}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle: list[TableId] = list(reversed(error.args[1]))
        return [], [_circular(known, circle)]
    problems = [_too_many(definitions)] if len(definitions) > MOST_TABLES else []
    return [known[table] for table in order], [*problems, *_too_deep(known, graph, order)]


def _circular(known: Mapping[TableId, Definition], circle: list[TableId]) -> Problem:
    first = known[circle[0]]
    path = " -> ".join(str(table) for table in circle)
    line, column = dict(zip(first.inputs, first.places, strict=False)).get(circle[1], (1, 1))
    remedy = "let one of them read captured tables only"
    return Problem(first.file, line, column, f"the tables read each other: {path}", remedy)


def _too_many(definitions: Sequence[Definition]) -> Problem:
    last = definitions[MOST_TABLES]
    what = f"there are {len(definitions)} derived tables, and may be {MOST_TABLES}"
    return Problem(last.file, 1, 1, what, "keep them in several pipelines")


def _too_deep(
    known: Mapping[TableId, Definition],
    graph: Mapping[TableId, set[TableId]],
    order: Sequence[TableId],
) -> list[Problem]:
    depth: dict[TableId, int] = {}
    for table in order:
        depth[table] = 1 + max((depth[each] for each in graph[table]), default=0)
    what = f"it is at depth {{}} of derived tables, and may be at {DEEPEST}"
    return [
        Problem(known[table].file, 1, 1, what.format(depth[table]), "join some of them into one")
        for table in order
        if depth[table] > DEEPEST
    ]
