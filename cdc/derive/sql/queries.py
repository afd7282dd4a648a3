"""Check queries: joins, groups, set operations, and names that engines resolve differently."""

from collections.abc import Iterable, Iterator

from sqlglot import exp

from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.events.names import OURS
from cdc.source.predicate.parse import RESERVED, folded_name

_QUALIFY = "write the table's name before it, as in orders.{name}"


def query_problems(report: Reporter, nodes: Iterable[exp.Expr]) -> Iterator[Problem]:
    """Yield the problems of the queries among all nodes of a tree, its set operations and names."""
    for node in nodes:
        match node:
            case exp.Select():
                yield from _joins(report, node)
                yield from _groups(report, node)
                yield from _hidden(report, node)
            case exp.SetOperation():
                yield from _mixed(report, node)
            case exp.Subquery():
                yield from _subquery(report, node)
            case exp.Column():
                yield from column_problems(report, node)


def _joins(report: Reporter, select: exp.Select) -> Iterator[Problem]:
    for join in select.args.get("joins") or []:
        comma = not (join.kind or join.side or report.follows(join, "join"))
        cross = join.kind == "CROSS" or (comma and not _condition(join))
        if cross == _condition(join) or join.kind not in {"", "INNER", "OUTER", "CROSS"}:
            yield report.on(join, "this join is refused", "write JOIN t ON ... or CROSS JOIN t")
        for column in join.args.get("using") or []:
            yield from _named(report, column)


def _condition(join: exp.Join) -> bool:
    return bool(join.args.get("on") or join.args.get("using"))


def _groups(report: Reporter, select: exp.Select) -> Iterator[Problem]:
    group = select.args.get("group")
    for each in group.expressions if group is not None else []:
        if isinstance(each, exp.Literal):
            count = len(select.expressions)
            if each.is_string or not each.this.isdecimal() or not 0 < int(each.this) <= count:
                remedy = f"positions are 1 to {count}"
                yield report.on(select, f"no output column at position {each.this}", remedy)
        elif isinstance(each, exp.Tuple | exp.Subquery):
            yield report.on(
                each, "this GROUP BY is refused", "list the expressions, separated by ,"
            )


def _hidden(report: Reporter, select: exp.Select) -> Iterator[Problem]:
    """A table's name may hide an input's column in one engine and not in the other.

    An output's name does not: both engines look for an input's column first.
    """
    sources = {name.lower() for name in _sources(select)}
    for column in _columns_of(select):
        if column.args.get("table") is not None:
            continue
        name = folded_name(column.this)
        if name.lower() in sources:
            what = f"{name} is a table here, and may be a column"
            yield report.on(column, what, _QUALIFY.format(name=name))


def _sources(select: exp.Select) -> Iterator[str]:
    joins = select.args.get("joins") or []
    for source in [select.args.get("from_"), *joins]:
        if source is not None:
            yield source.this.alias_or_name


def _columns_of(select: exp.Select) -> Iterator[exp.Column]:
    """Yield the columns that are resolved in this SELECT itself or, if unknown there, outside."""
    stack = list(select.iter_expressions())
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            yield node
        elif not isinstance(node, exp.Query) or isinstance(node, exp.Subquery):
            stack.extend(
                child for child in node.iter_expressions() if not isinstance(child, exp.Select)
            )


def _mixed(report: Reporter, operation: exp.SetOperation) -> Iterator[Problem]:
    for side in (operation.left, operation.right):
        same = type(side) is type(operation) and side.args.get("distinct") == operation.args.get(
            "distinct"
        )
        if isinstance(side, exp.SetOperation) and not same:
            what = "UNION, INTERSECT and EXCEPT are mixed"
            yield report.on(side, what, "write the inner one as SELECT ... FROM (...) AS name")
            return


def _subquery(report: Reporter, subquery: exp.Subquery) -> Iterator[Problem]:
    in_from = isinstance(subquery.parent, exp.From | exp.Join)
    if in_from and not subquery.alias:
        yield report.on(subquery, "a subquery in FROM has no name", "write (SELECT ...) AS name")
    if not isinstance(subquery.this, exp.Query) or isinstance(subquery.this, exp.Subquery):
        yield report.on(subquery, "these parentheses are refused", "remove them")
    if not in_from and isinstance(subquery.this, exp.Query) and len(subquery.this.selects) != 1:
        yield report.on(subquery, "a subquery as a value has several columns", "select one")


def column_problems(report: Reporter, column: exp.Column) -> Iterator[Problem]:
    """Yield the problems of a column's name."""
    if isinstance(column.this, exp.Identifier):
        yield from _named(report, column.this)
        name = folded_name(column.this)
        if not column.this.args.get("quoted") and name in RESERVED:
            what = f"{name} is a reserved word"
            yield report.on(column, what, f'to name a column, quote it: "{name}"')


def _named(report: Reporter, identifier: exp.Identifier) -> Iterator[Problem]:
    name = folded_name(identifier)
    if name.lower().startswith(OURS):
        what = f"{name} is a column of wal2lake's own"
        yield report.on(identifier, what, "use the source's columns")
    if name.lower() == "rowid":
        yield report.on(identifier, "rowid is a place in storage elsewhere", "use the table's key")
