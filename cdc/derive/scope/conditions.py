"""Find the tables that conditions of WHERE ask: EXISTS, NOT EXISTS and IN.

A change of such a table concerns the rows that an equality in the subquery links to it. NOT IN has
no such link: one NULL in the subquery concerns every row.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from cdc.derive.scope.leaf import Leaf
from cdc.derive.scope.links import conjuncts, link_by
from cdc.derive.scope.refused import WholeError
from cdc.tables import TableId

_GROUPED = ("group", "having", "joins", "distinct", "with_")


def condition_occurrences(leaf: Leaf, columns: Mapping[TableId, Sequence[str]]) -> None:
    """Add the tables that conditions of WHERE ask, and their links.

    Raises WholeError for a subquery of another form.
    """
    where = leaf.select.args.get("where")
    outer = range(len(leaf.occurrences))
    for condition in conjuncts(None if where is None else where.this):
        if condition.find(exp.Query) is not None:
            _add(leaf, condition.unnest(), columns, outer)


def _add(
    leaf: Leaf,
    condition: exp.Expr,
    columns: Mapping[TableId, Sequence[str]],
    outer: Sequence[int],
) -> None:
    query, equal = _asked(condition)
    if not _is_plain(query):
        raise WholeError("a condition asks a subquery with joins, groups or subqueries of its own")
    number = leaf.add(query.args["from_"].this, columns, is_condition=True)
    where = query.args.get("where")
    equalities = [*conjuncts(None if where is None else where.this), *equal]
    _refuse_hidden(leaf, equalities, number)
    link = link_by(leaf, equalities, number, outer)
    if link is None:
        table = leaf.occurrences[number].table
        raise WholeError(f"a condition asks {table} without an equality of columns")
    leaf.links.append(link)


def _asked(condition: exp.Expr) -> tuple[exp.Select, list[exp.Expr]]:
    """Return the query of a condition, and the equality that IN is."""
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else condition
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Select):
        return inner.this, []
    query = inner.args.get("query") if isinstance(inner, exp.In) else None
    if (
        query is not None
        and not isinstance(condition, exp.Not)
        and isinstance(query.this, exp.Select)
    ):
        select = query.this
        return select, [exp.EQ(this=inner.this.copy(), expression=_first(select))]
    raise WholeError("a condition of WHERE has a subquery that is not EXISTS or IN")


def _first(select: exp.Select) -> exp.Expr:
    value: exp.Expr = select.selects[0].unalias().copy()
    if isinstance(value, exp.Column) and not value.table:
        source = select.args["from_"].this.alias_or_name
        value.set("table", exp.to_identifier(source, quoted=True))
    return value


def _is_plain(query: exp.Select) -> bool:
    parts = [part for part in query.find_all(exp.Query) if part is not query]
    functions = query.find(exp.AggFunc, exp.Window)
    return not (parts or functions or any(query.args.get(name) for name in _GROUPED))


def _refuse_hidden(leaf: Leaf, equalities: Sequence[exp.Expr], number: int) -> None:
    """Name the table of every column without one: the subquery's own goes before the others."""
    own = leaf.columns[number]
    for equality in equalities:
        for column in equality.find_all(exp.Column):
            if not column.table and column.name in own:
                name = exp.to_identifier(leaf.occurrences[number].name, quoted=True)
                column.set("table", name)
