"""Print the queries of a scope for DuckDB."""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from cdc.derive.scope.leaf import Leaf
from cdc.derive.scope.links import conjuncts
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
    )


def restricted_query(tree: exp.Query, leaves: Sequence[tuple[Leaf, Expressions]]) -> str:
    """Return the query for the keys in DIRTY; the tree is changed."""
    for leaf, expressions in leaves:
        where = leaf.select.args.get("where")
        conditions = [] if where is None else [exp.Paren(this=where.this)]
        condition = exp.and_(*conditions, _is_dirty(expressions), copy=False)
        leaf.select.set("where", exp.Where(this=condition))
    return printing.duckdb(tree)


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
        _rename(source.this, leaf.occurrences[number].name, number)
    if conditions := list(_conditions(leaf.select)):
        select.set("where", exp.Where(this=exp.and_(*conditions)))
    return select


def _named(value: exp.Expr, number: int) -> exp.Alias:
    return exp.Alias(this=value.copy(), alias=_identifier(column(number)))


def _rename(table: exp.Expr, name: str, number: int) -> None:
    table.set("db", _identifier(SCHEMA))
    table.set("this", _identifier(restricted(number)))
    table.set("alias", exp.TableAlias(this=_identifier(name)))


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    where = select.args.get("where")
    for condition in conjuncts(None if where is None else where.this):
        if condition.find(exp.Query) is None:
            yield exp.Paren(this=condition.copy())


def _is_dirty(expressions: Expressions) -> exp.Exists:
    """Return the condition that the scope key's values are in DIRTY; NULL is a value there."""
    equal = [
        exp.NullSafeEQ(
            this=exp.column(_identifier(column(number)), table=_identifier(_ALIAS)),
            expression=exp.Paren(this=value.copy()),
        )
        for number, value in enumerate(expressions)
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
