"""Parse and check one expression of MEASURES or DEFINE."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from cdc.derive.pattern.clauses import Item
from cdc.derive.sql import refused
from cdc.derive.sql.cut_time import NAME as CUT_TIME
from cdc.derive.sql.normal import normalize
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.tree import tree_problems
from cdc.derive.sql.windows import IN_ORDER
from cdc.derive.sql.words import word_problems
from cdc.source.predicate.parse import folded_name

PREV: Final = "prev"
MOVES: Final = frozenset({"first", "last", PREV})
"""Functions that look at a row of the match."""
AGGREGATES: Final = (exp.Count, exp.Sum, exp.Min, exp.Max)
FAR: Final = (exp.First, exp.Last, exp.Anonymous, *AGGREGATES)
"""What has a value of other rows than the current one; Anonymous is PREV."""
_OTHERS: Final = (
    exp.Subquery,
    exp.Exists,
    exp.Query,
    exp.Window,
    exp.Filter,
    exp.Distinct,
    exp.Avg,
    exp.LogicalAnd,
    exp.LogicalOr,
    *IN_ORDER,
)
_SELECT: Final = "SELECT "
_REFUSED: Final = "is refused in a pattern"
_INSTEAD: Final = "use columns, first, last, prev, count, sum, min, max, and what a row alone gives"
_BY_TIME: Final = "use a column, or name cut_time() in a table over the pattern"


def expression(
    report: Reporter, text: str, item: Item, variables: Collection[str]
) -> tuple[exp.Expr | None, list[Problem]]:
    """Return the expression in its printed form, and its problems.

    ``text`` is that of the file, so that places are right. Every column with a qualifier is one of
    a variable, and there is no function of a row but those of MOVES, and no other aggregate.
    """
    problems = [
        replace(one, remedy=_BY_TIME) if one.remedy == refused.CLOCK else one
        for one in word_problems(report, item.tokens, MOVES)
    ]
    select = None if problems else _parsed(text, item)
    if select is None:
        what, remedy = "it cannot be parsed as an expression", "write one expression"
        at = item.tokens[0].start if item.tokens else item.at
        return None, problems or [report.at(at, what, remedy)]
    problems = list(_problems(report, select, variables))
    return (None, problems) if problems else (normalize(select).selects[0], [])


def _parsed(text: str, item: Item) -> exp.Select | None:
    """Parse the text of the tokens at its place, behind a SELECT."""
    if not item.tokens:
        return None
    begin = item.tokens[0].start
    padded = " " * (begin - len(_SELECT)) + _SELECT + text[begin : item.tokens[-1].end + 1]
    try:
        select = sqlglot.parse_one(padded, read="postgres")
    except (SqlglotError, ValueError):
        return None
    if not isinstance(select, exp.Select) or len(select.selects) != 1:
        return None
    given = {name for name, value in select.args.items() if value}
    single = given == {"expressions"} and not isinstance(select.selects[0], exp.Alias)
    return select if single else None


def _problems(
    report: Reporter, select: exp.Select, variables: Collection[str]
) -> Iterator[Problem]:
    (whole,) = select.selects
    far = list(whole.find_all(*FAR))
    wrong = [
        *(
            report.on(node, f"{_shown(node)} {_REFUSED}", _INSTEAD)
            for node in whole.find_all(*_OTHERS)
        ),
        *(problem for node in far for problem in _far(report, node)),
    ]
    if wrong:
        yield wrong[0]
        return
    for column in whole.find_all(exp.Column):
        name = _qualifier(column)
        if name and name not in variables:
            remedy = f"write one of {', '.join(sorted(variables))} before it, or nothing"
            yield report.on(column, f"the pattern has no variable {name}", remedy)
    yield from tree_problems(report, _without_moves(select))


def _far(report: Reporter, node: exp.Expr) -> Iterator[Problem]:
    """Yield what is wrong with a function of other rows."""
    if node.find_ancestor(*FAR):
        yield report.on(node, f"{_shown(node)} is within another", "look at a row once")
        return
    if isinstance(node, exp.Anonymous):
        yield from _prev(report, node)
    elif isinstance(node, exp.First | exp.Last) and node.expression:
        yield report.on(node, f"{_shown(node)} has a distance", "write prev(a, 2), or first(b.a)")
    if len({_qualifier(column) for column in node.find_all(exp.Column)}) > 1:
        what = f"{_shown(node)} has columns of several variables"
        yield report.on(node, what, "write the same variable before each, or none")
    if not isinstance(node, exp.Count) and not list(node.find_all(exp.Column)):
        yield report.on(node, f"{_shown(node)} has no column", "write the constant alone")


def _prev(report: Reporter, node: exp.Anonymous) -> Iterator[Problem]:
    name = str(node.this).lower()
    if name != PREV:
        remedy = _BY_TIME if name == CUT_TIME else _INSTEAD
        yield report.on(node, f"{_shown(node)} {_REFUSED}", remedy)
        return
    distance = node.expressions[1:]
    constant = [each for each in distance if isinstance(each, exp.Literal) and _is_whole(each)]
    if len(node.expressions) not in {1, 2} or constant != distance:
        yield report.on(node, "prev needs a constant distance", "write prev(a), or prev(a, 2)")


def _is_whole(literal: exp.Literal) -> bool:
    return not literal.is_string and str(literal.this).isdecimal()


def _without_moves(select: exp.Select) -> exp.Select:
    """Return the tree with what FIRST, LAST and PREV look at in their place."""
    tree = select.copy()
    for node in list(tree.find_all(exp.First, exp.Last, exp.Anonymous)):
        node.replace(exp.Paren(this=looked_at(node).copy()))
    return tree


def looked_at(node: exp.Expr) -> exp.Expr:
    """Return the expression that FIRST, LAST or PREV takes from a row."""
    inner: exp.Expr = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    return inner


def variable_of(column: exp.Column) -> str | None:
    """Return the variable whose row a column is of; None for the current row."""
    return _qualifier(column) or None


def _qualifier(column: exp.Column) -> str:
    table = column.args.get("table")
    return folded_name(table) if isinstance(table, exp.Identifier) else ""


def _shown(node: exp.Expr) -> str:
    return node.sql("postgres", unsupported_level=ErrorLevel.IGNORE)[:60]
