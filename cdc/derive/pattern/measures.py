"""Write the measures as one query for DuckDB over the rows and what the matcher found.

The matcher says which rows a match has and which variable each is of. All that a measure computes
of them is an aggregate over the rows of one match, and has DuckDB's types.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from cdc.derive.pattern.expressions import AGGREGATES, looked_at, variable_of
from cdc.derive.sql import printing

ROWS: Final = "_cdc_rows"
"""The table with all columns of the input, and ROW."""
MATCHES: Final = "_cdc_matches"
"""The table with a row for each row of a match: MATCH, ROW and VARIABLE."""
ROW: Final = "_cdc_row"
MATCH: Final = "_cdc_match"
VARIABLE: Final = "_cdc_variable"


def matches_query(partition: Sequence[str], measures: Sequence[tuple[str, exp.Expr]]) -> str:
    """Return the query whose rows are the matches: the partition's columns, and the measures."""
    columns = [(name, _of_last(exp.column(_name(name)))) for name in partition]
    outputs = [*columns, *((name, _aggregated(tree)) for name, tree in measures)]
    select = exp.Select(
        expressions=[exp.Alias(this=tree, alias=_name(name)) for name, tree in outputs],
        from_=exp.From(this=exp.Table(this=_name(ROWS))),
        joins=[exp.Join(this=exp.Table(this=_name(MATCHES)), using=[_name(ROW)])],
        group=exp.Group(expressions=[exp.column(_name(MATCH))]),
    )
    return printing.duckdb(select)


def _aggregated(tree: exp.Expr) -> exp.Expr:
    """Return the expression with every value of a row of the match as an aggregate."""
    root = exp.Paren(this=tree.copy())
    for node in list(root.find_all(exp.First, exp.Last, *AGGREGATES)):
        node.replace(_far(node))
    for column in list(root.find_all(exp.Column)):
        if not column.find_ancestor(exp.Filter, exp.Anonymous, *AGGREGATES):
            column.replace(_filtered(_of_last(_plain(column)), variable_of(column)))
    return root


def _far(node: exp.Expr) -> exp.Expr:
    columns = list(node.find_all(exp.Column))
    variable = variable_of(columns[0]) if columns else None
    if isinstance(node, exp.First | exp.Last):
        name = "FIRST" if isinstance(node, exp.First) else "LAST"
        return _filtered(_in_order(name, _plain(looked_at(node))), variable)
    return _filtered(_plain(node), variable)


def _plain(node: exp.Expr) -> exp.Expr:
    """Return a copy without variables before the columns."""
    tree = node.copy()
    for column in [tree] if isinstance(tree, exp.Column) else tree.find_all(exp.Column):
        column.set("table", None)
    return tree


def _of_last(node: exp.Expr) -> exp.Expr:
    return _in_order("LAST", node)


def _in_order(name: str, node: exp.Expr) -> exp.Expr:
    """Return the value of the first or last row, NULL included."""
    by = exp.Ordered(this=exp.column(_name(ROW)), desc=False, nulls_first=False)
    return exp.Anonymous(this=name, expressions=[exp.Order(this=node, expressions=[by])])


def _filtered(aggregate: exp.Expr, variable: str | None) -> exp.Expr:
    if variable is None:
        return aggregate
    is_of = exp.EQ(this=exp.column(_name(VARIABLE)), expression=exp.Literal.string(variable))
    return exp.Filter(this=aggregate, expression=exp.Where(this=is_of))


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
