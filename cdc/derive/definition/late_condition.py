"""Read the condition by which an operator chooses late rows: SQL of the same list as a query's."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from sqlglot import exp

from cdc.derive.sql import printing
from cdc.derive.sql.normal import normalize
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.statement import statement
from cdc.derive.sql.tree import tree_problems
from cdc.source.predicate.parse import folded_name

OPTION: Final = "--admit"
"""What the places of problems name, as others name a file."""
_BEFORE: Final = "SELECT 1 AS one FROM late.rows WHERE\n"
_PARTS: Final = frozenset({"expressions", "from_", "where"})


def condition(text: str, columns: Sequence[str]) -> tuple[str, list[Problem]]:
    """Return a condition over late rows with these columns, for DuckDB; or its problems."""
    report = Reporter(OPTION, _BEFORE + text)
    if not text.strip():
        return "", _placed([report.at(0, "there is no condition", "write one, such as id = 7")])
    query, problems = statement(report, _BEFORE + text)
    if query is None:
        return "", _placed(problems)
    try:
        problems = [*_beyond(report, query)] or tree_problems(report, query)
        problems = problems or [*_unknown(report, query, columns)]
    except RecursionError:
        problems = [report.at(0, "it is nested too deeply", "write a shorter condition")]
    if problems:
        return "", _placed(problems)
    return printing.duckdb(normalize(query).args["where"].this), []


def _placed(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems at their places in the option's text."""
    return sorted(
        replace(one, line=one.line - 1) if one.line > 1 else replace(one, line=1, column=1)
        for one in set(problems)
    )


def _beyond(report: Reporter, query: exp.Query) -> Iterator[Problem]:
    """Yield what there is beside a condition."""
    remedy = "write what stands behind WHERE, and nothing else"
    more = [name for name, value in query.args.items() if value and name not in _PARTS]
    if more or not isinstance(query, exp.Select):
        yield report.at(len(_BEFORE), "it is more than one condition", remedy)
    for inner in query.find_all(exp.Query):
        if inner is not query:
            yield report.on(inner, "a subquery is refused in a condition of late rows", remedy)


def _unknown(report: Reporter, query: exp.Query, columns: Sequence[str]) -> Iterator[Problem]:
    for column in query.args["where"].find_all(exp.Column):
        name = folded_name(column.this)
        if column.args.get("table"):
            yield report.on(column, f"the column {name} has a table", f"write {name} alone")
        elif name not in columns:
            near = get_close_matches(name, columns, n=1)
            known = f"use one of: {', '.join(columns)}"
            remedy = f"did you mean {near[0]}?" if near else known
            yield report.on(column, f"late rows have no column {name}", remedy)
