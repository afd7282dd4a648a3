"""Print the queries of a scope for DuckDB."""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from cdc.derive.scope.leaf import Leaf
from cdc.derive.scope.links import conjuncts, is_inner
from cdc.derive.scope.scope import DIRTY, SCHEMA, Branch, column, restricted
from cdc.derive.sql import printing

Expressions = Sequence[exp.Expr]
_ALIAS: Final = "_cdc_dirty"
"""No definition can name it."""


def branch(leaf: Leaf, expressions: Expressions) -> Branch:
    """Return the branch of a leaf in which the scope key is these expressions."""
    return Branch(
        occurrences=tuple(leaf.occurrences),
        links=tuple(leaf.links),
        reached=printing.duckdb(_reached(leaf, expressions)),
        is_inner=all(map(is_inner, leaf.select.args.get("joins") or []))
        and not any(one.together for one in leaf.occurrences),
    )


def restricted_query(tree: exp.Query, leaves: Sequence[tuple[Leaf, Expressions]]) -> str:
    """Return the query for the keys in DIRTY; the tree is changed."""
    for leaf, expressions in leaves:
        _narrow(leaf, expressions)
        where = leaf.select.args.get("where")
        conditions = [] if where is None else [exp.Paren(this=where.this)]
        condition = exp.and_(*conditions, _is_dirty([*enumerate(expressions)]), copy=False)
        leaf.select.set("where", exp.Where(this=condition))
    return printing.duckdb(tree)


def _narrow(leaf: Leaf, expressions: Expressions) -> None:
    """Read only those rows of a table that have values of the scope key, where it has columns.

    The condition in WHERE alone would be right too: engines look at every row of a join for it.
    Beside a RIGHT or FULL join, and of an optional table, a row that is left out would be missed
    as the match of another.
    """
    joins = leaf.select.args.get("joins") or []
    if any(join.side in {"RIGHT", "FULL"} for join in joins):
        return
    sources = [leaf.select.args["from_"], *joins]
    for number, source in enumerate(sources):
        columns = [(n, one) for n, one in enumerate(expressions) if _is_own(leaf, one, number)]
        optional = isinstance(source, exp.Join) and source.side == "LEFT"
        if columns and not optional and leaf.occurrences[number].window is None:
            name = leaf.occurrences[number].name
            source.this.replace(_narrowed(source.this, name, columns))


def _is_own(leaf: Leaf, expression: exp.Expr, number: int) -> bool:
    found = leaf.stored(expression, range(len(leaf.columns)))
    return found is not None and found[0] == number


def _narrowed(table: exp.Expr, name: str, columns: Sequence[tuple[int, exp.Expr]]) -> exp.Subquery:
    select = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=table.copy()),
        where=exp.Where(this=_is_dirty([(n, one.copy()) for n, one in columns])),
    )
    return exp.Subquery(this=select, alias=exp.TableAlias(this=_identifier(name)))


def _reached(leaf: Leaf, expressions: Expressions) -> exp.Select:
    """Return the query for the scope key's values of the rows of the restricted tables.

    Conditions with subqueries are left out: more values are found then, never fewer.
    """
    select = exp.Select(
        expressions=[_named(value, number) for number, value in enumerate(expressions)],
        distinct=exp.Distinct(),
        from_=leaf.select.args["from_"].copy(),
        joins=[join.copy() for join in leaf.select.args.get("joins") or []],
    )
    sources = [select.args["from_"], *select.args["joins"]]
    for number, source in enumerate(sources):
        rename(source.this, leaf.occurrences[number].name, number)
    if conditions := list(_conditions(leaf.select)):
        select.set("where", exp.Where(this=exp.and_(*conditions)))
    return select


def _named(value: exp.Expr, number: int) -> exp.Alias:
    return exp.Alias(this=value.copy(), alias=_identifier(column(number)))


def rename(table: exp.Expr, name: str, number: int) -> None:
    """Read the restricted rows of an occurrence in the place of its table."""
    table.set("db", _identifier(SCHEMA))
    table.set("this", _identifier(restricted(number)))
    table.set("alias", exp.TableAlias(this=_identifier(name)))


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    where = select.args.get("where")
    for condition in conjuncts(None if where is None else where.this):
        if condition.find(exp.Query) is None:
            yield exp.Paren(this=condition.copy())


def _is_dirty(expressions: Sequence[tuple[int, exp.Expr]]) -> exp.Exists:
    """Return the condition that values of the scope key, by number, are in DIRTY; NULL is one."""
    equal = [
        exp.NullSafeEQ(
            this=exp.column(_identifier(column(number)), table=_identifier(_ALIAS)),
            expression=exp.Paren(this=value.copy()),
        )
        for number, value in expressions
    ]
    alias = exp.TableAlias(this=_identifier(_ALIAS))
    table = exp.Table(this=_identifier(DIRTY), db=_identifier(SCHEMA), alias=alias)
    return exp.Exists(
        this=exp.Select(
            expressions=[exp.Boolean(this=True)],
            from_=exp.From(this=table),
            where=exp.Where(this=exp.and_(*equal)),
        )
    )


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
