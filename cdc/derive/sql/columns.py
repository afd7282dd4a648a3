"""Find the output columns of a query and the key that its GROUP BY makes unique."""

from collections.abc import Sequence

from sqlglot import exp

from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.events.names import OURS
from cdc.source.predicate.parse import folded_name


def columns(report: Reporter, query: exp.Query) -> tuple[tuple[str, ...], list[Problem]]:
    """Return the names of the output columns in order, and their problems."""
    names: list[str] = []
    problems = []
    for output in query.selects:
        name = _name(output)
        complaint = _complaint(output, name, names)
        if complaint is not None:
            problems.append(report.on(output, *complaint))
        names.append(name)
    return tuple(names), problems


def _name(output: exp.Expr) -> str:
    if isinstance(output, exp.Alias):
        return folded_name(output.args["alias"])
    if isinstance(output, exp.Column) and isinstance(output.this, exp.Identifier):
        return folded_name(output.this)
    return ""


def _complaint(output: exp.Expr, name: str, before: Sequence[str]) -> tuple[str, str] | None:
    if not name:
        return "an output column has no name", "write AS name after it"
    if name.lower() in {each.lower() for each in before}:
        return f"two output columns are called {name}", "give one of them another name by AS"
    if name.lower().startswith(OURS):
        return f"{name} is a name of wal2lake's own", "choose one that does not begin with _cdc_"
    if isinstance(output.unalias(), exp.Null):
        return f"{name} is NULL of no type", "give it one, as NULL::text"
    return None


def key_of_groups(normal: exp.Query) -> tuple[str, ...]:
    """Return the output columns that GROUP BY makes unique; none if it does not show.

    The query is normalized, and every expression of the GROUP BY has to be an output column.
    """
    group = normal.args.get("group") if isinstance(normal, exp.Select) else None
    if group is None:
        return ()
    names = {output.unalias(): output.alias_or_name for output in normal.selects}
    found = [names.get(expression) for expression in group.expressions]
    return tuple(dict.fromkeys(name for name in found if name)) if all(found) else ()
