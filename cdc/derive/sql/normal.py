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


def normalize(tree: exp.Query) -> exp.Query:
    """Bring the tree into its printed form, and return it; it loses its names' places."""
    nodes = list(tree.walk())
    for node in nodes:
        if isinstance(node, exp.Identifier):
            _fold(node)
    for node in nodes:
        if isinstance(node, exp.Select):
            _without_positions(node)
    for node in list(tree.walk()):
        if _needs_parentheses(node):
            _enclose(node)
    return tree


def _fold(name: exp.Identifier) -> None:
    """Fold and quote a name; without its place each copy of the tree is cheaper."""
    name.set("this", folded_name(name))
    name.set("quoted", True)  # noqa: FBT003 - sqlglot takes it by position
    name.meta.clear()


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


def _needs_parentheses(node: exp.Expr) -> bool:
    if not isinstance(node, _OPERATORS) or isinstance(node, _CLOSED):
        return False
    chained = isinstance(node, exp.And | exp.Or) and type(node) is type(node.parent)
    return isinstance(node.parent, _OPERATORS) and not chained


def _enclose(node: exp.Expr) -> None:
    """Put parentheses around a node where it stands."""
    parentheses = exp.Paren()
    node.replace(parentheses)
    parentheses.set("this", node)
