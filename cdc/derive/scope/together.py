"""Find the expressions whose values GROUP BY and PARTITION BY keep apart."""

from collections.abc import Callable, Iterator

from sqlglot import exp

from cdc.derive.scope.refused import WholeError


def kept_apart(select: exp.Select) -> Callable[[exp.Expr], bool]:
    """Return whether rows with different values of an expression never meet in the SELECT.

    Raises WholeError if all rows meet: in an aggregate without groups, or in a window without
    partitions.
    """
    sets = list(_sets(select))

    def apart(value: exp.Expr) -> bool:
        if isinstance(value, exp.Literal) or value.find(exp.AggFunc, exp.Window, exp.Query):
            return False
        return all(value in each for each in sets)

    return apart


def _sets(select: exp.Select) -> Iterator[set[exp.Expr]]:
    group = select.args.get("group")
    if group is not None:
        yield set(group.expressions)
    elif any(_aggregates(part) for part in _parts(select)):
        raise WholeError("it aggregates all rows: it has no GROUP BY")
    for part in _parts(select):
        for window in part.find_all(exp.Window):
            partition = window.args.get("partition_by") or []
            if not partition:
                raise WholeError("a window function has no PARTITION BY")
            yield set(partition)


def _parts(select: exp.Select) -> Iterator[exp.Expr]:
    yield from select.selects
    if (having := select.args.get("having")) is not None:
        yield having


def _aggregates(part: exp.Expr) -> bool:
    """Return whether there is an aggregate that is not a window function."""
    return any(
        not isinstance(found.parent, exp.Window)
        and not (
            isinstance(found.parent, exp.Filter) and isinstance(found.parent.parent, exp.Window)
        )
        for found in part.find_all(exp.AggFunc)
    )
