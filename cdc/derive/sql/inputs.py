"""Find the tables that a query reads."""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from cdc.derive.sql.place import Reporter, start_of
from cdc.derive.sql.problem import Place, Problem
from cdc.source.predicate.parse import folded_name
from cdc.tables import TableId

MOST_INPUTS: Final = 8


def inputs(report: Reporter, query: exp.Query) -> tuple[dict[TableId, Place], list[Problem]]:
    """Return the place of the first use of each input, and the problems of the tables."""
    found: dict[TableId, Place] = {}
    problems = []
    for table in sorted(query.find_all(exp.Table), key=start_of):
        name = _name(table)
        if name is not None:
            found.setdefault(name, report.place(start_of(table.args["db"])))
        elif not _is_cte(table):
            problems.append(_unqualified(report, table))
    if len(found) > MOST_INPUTS:
        what = f"the query reads {len(found)} tables, and may read {MOST_INPUTS}"
        problems.append(report.on(query, what, "derive a part of it as a table of its own"))
    if not found and not problems:
        problems.append(report.on(query, "the query reads no table", "add FROM schema.table"))
    return found, problems


def _name(table: exp.Table) -> TableId | None:
    schema, name = table.args.get("db"), table.this
    if isinstance(schema, exp.Identifier) and isinstance(name, exp.Identifier):
        return TableId(folded_name(schema), folded_name(name))
    return None


def _unqualified(report: Reporter, table: exp.Table) -> Problem:
    return report.on(table, f"{table.name} has no schema", "write it as schema.table")


def _is_cte(table: exp.Table) -> bool:
    wanted = folded_name(table.this) if isinstance(table.this, exp.Identifier) else ""
    return wanted in _visible(table)


def _visible(node: exp.Expr) -> Iterator[str]:
    """Yield the names that WITH gives to queries and that are known at the node."""
    below: exp.Expr | None = node
    while below is not None:
        above = below.parent
        if isinstance(above, exp.With):
            earlier = above.expressions[: above.expressions.index(below)]
            yield from (folded_name(cte.args["alias"].this) for cte in earlier)
        elif isinstance(above, exp.Query) and not isinstance(below, exp.With):
            clause = above.args.get("with_")
            ctes = clause.expressions if clause is not None else []
            yield from (folded_name(cte.args["alias"].this) for cte in ctes)
        below = above
