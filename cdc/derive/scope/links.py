"""Find the columns by whose equality a table is joined."""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from cdc.derive.scope.leaf import Leaf
from cdc.derive.scope.refused import WholeError
from cdc.derive.scope.scope import Link

Pairs = list[tuple[str, str]]


def link_of_join(leaf: Leaf, join: exp.Join) -> Link:
    """Return the link of a joined table to an earlier one.

    An equality in WHERE counts where every join is an inner one: beside an outer join, rows that do
    not pass WHERE can be the match that another row lacks. Raises WholeError if there is no link.
    """
    number = 1 + (leaf.select.args["joins"]).index(join)
    earlier = range(number)
    if join.args.get("on") is not None and join.args["on"].find(exp.Query) is not None:
        raise WholeError("a subquery is in the condition of a join")
    conditions = [*conjuncts(join.args.get("on"))]
    if all(is_inner(each) for each in leaf.select.args["joins"]):
        where = leaf.select.args.get("where")
        conditions += conjuncts(None if where is None else where.this)
    link = link_by(leaf, conditions, number, earlier) or _by_using(leaf, join, number, earlier)
    if link is None:
        name = leaf.occurrences[number].table
        raise WholeError(f"{name} is joined without an equality of columns")
    _refuse_third(leaf, join, link)
    return link


def _refuse_third(leaf: Leaf, join: exp.Join, link: Link) -> None:
    """Refuse a condition on a third table beside a RIGHT or FULL join.

    Near a change only some rows of a table are looked at. A row that lacks a match only for that
    could then be the match of another row, and hide that one lost or got its match.
    """
    if not any(each.side in {"RIGHT", "FULL"} for each in leaf.select.args["joins"]):
        return
    on = join.args.get("on")
    for column in [] if on is None else on.find_all(exp.Column):
        if not set(leaf.owners(column, range(link.one))) <= {link.other}:
            raise WholeError("beside a RIGHT or FULL join, a condition names a third table")


def link_by(
    leaf: Leaf, conditions: Sequence[exp.Expr], number: int, others: Sequence[int]
) -> Link | None:
    """Return the link that equalities among the conditions are; None if none is one."""
    found: dict[int, Pairs] = {}
    for condition in conditions:
        equality = condition.unnest()
        if not isinstance(equality, exp.EQ):
            continue
        sides = [leaf.stored(side, [*others, number]) for side in (equality.left, equality.right)]
        own = [side for side in sides if side is not None and side[0] == number]
        other = [side for side in sides if side is not None and side[0] != number]
        if own and other:
            found.setdefault(other[0][0], []).append((own[0][1], other[0][1]))
    if not found:
        return None
    nearest = min(found)
    return Link(one=number, other=nearest, columns=tuple(found[nearest]))


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that all have to be true."""
    if condition is None:
        return
    if isinstance(condition, exp.Paren) and isinstance(condition.unnest(), exp.And):
        condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


def is_inner(join: exp.Join) -> bool:
    """Return whether a join gives only rows of both sides."""
    return not join.side and join.kind in {"", "INNER", "CROSS"}


def _by_using(leaf: Leaf, join: exp.Join, number: int, earlier: Sequence[int]) -> Link | None:
    names = [each.name for each in join.args.get("using") or []]
    owners = [leaf.owners(exp.column(name), earlier) for name in names]
    if not names or any(len(each) != 1 or each != owners[0] for each in owners):
        return None
    other = owners[0][0]
    if not set(names) <= set(leaf.columns[other]) & set(leaf.columns[number]):
        return None
    return Link(one=number, other=other, columns=tuple((name, name) for name in names))
