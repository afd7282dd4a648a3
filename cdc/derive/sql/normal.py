"""Bring a checked tree into the form that is printed: what engines resolve differently is resolved.

Names are folded as Postgres does and quoted, positions in GROUP BY are replaced by what they name,
and every operator within an operator is put in parentheses, so that no precedence matters.
"""

from sqlglot import exp

from cdc.source.predicate.parse import folded_name

_OPERATORS = (
    exp.Binary,
    exp.Unary,
    exp.Between,
    exp.In,
    exp.AtTimeZone,
    exp.Interval,
    exp.Case,
    exp.Exists,
)
_CLOSED = (exp.Paren, exp.Column, exp.Literal, exp.Dot)


def normalized(query: exp.Query) -> exp.Query:
    """Return the tree in its printed form; the argument stays as it is."""
    tree = query.copy()
    for name in list(tree.find_all(exp.Identifier)):
        name.replace(exp.to_identifier(folded_name(name), quoted=True))
    for select in list(tree.find_all(exp.Select)):
        _without_positions(select)
    for node in list(tree.find_all(*_OPERATORS)):
        if isinstance(node.parent, _OPERATORS) and not isinstance(node, _CLOSED):
            chained = isinstance(node, exp.And | exp.Or) and type(node) is type(node.parent)
            if not chained:
                _enclose(node)
    return tree


def _without_positions(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is None:
        return
    outputs = select.expressions
    group.set(
        "expressions",
        [
            outputs[int(each.this) - 1].unalias().copy() if isinstance(each, exp.Literal) else each
            for each in group.expressions
        ],
    )


def _enclose(node: exp.Expr) -> None:
    """Put parentheses around a node where it stands."""
    parentheses = exp.Paren()
    node.replace(parentheses)
    parentheses.set("this", node)
