"""Find the LEFT JOIN that bounds how long rows wait for those of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc.derive.definition.durations import microseconds
from cdc.derive.late.rule import Bound
from cdc.derive.sql.event_window import ARGUMENT

WITHOUT_WINDOW: Final = (
    "use tumble, hop or sessions, or LEFT JOIN the table with a bound on its time in ON"
)
_UPPER: Final[dict[type[exp.Expr], bool]] = {
    exp.LTE: False,
    exp.LT: False,
    exp.GTE: True,
    exp.GT: True,
}
"""The comparisons that bound a side from above; True: the right one."""

_SIGNS: Final[dict[type[exp.Expr], int]] = {exp.Add: 1, exp.Sub: -1}


@dataclass(frozen=True, slots=True)
class Waited:
    """Describes an upper bound of a join: ``column <= since + length``."""

    column: exp.Column
    since: exp.Column
    length: int  # in microseconds
    upper: exp.Expr

    @property
    def bound(self) -> Bound:
        """Return what a rule says of it."""
        return Bound(time=self.column.name, length=self.length)


def joined_tables(query: exp.Query, column: str) -> list[exp.Table]:
    """Return the tables without a window that the name of a late column may be of.

    A name without its table is that of every join that bounds such a column.
    """
    *qualifier, name = column.split(".")
    tables = [table for table in query.find_all(exp.Table) if _is_plain(table)]
    if not qualifier:
        return [table for table in tables if any(upper_bounds(table, name))]
    return [
        table
        for table in tables
        if tuple(qualifier) in {(table.alias_or_name,), (table.name,), (table.db, table.name)}
    ]


def _is_plain(table: exp.Table) -> bool:
    return bool(table.db) and ARGUMENT not in table.args


def upper_bounds(table: exp.Table, time: str) -> list[Waited]:
    """Return how ON bounds a column of the joined table by a column of another and a duration."""
    on = table.parent.args.get("on") if isinstance(table.parent, exp.Join) else None
    alias = table.alias_or_name
    return [
        Waited(side, *found, upper)
        for condition in _conjuncts(on)
        for side, upper in _compared(condition)
        if isinstance(side, exp.Column) and (side.table, side.name) == (alias, time)
        for found in [_since(upper)]
        if found is not None and found[0].table not in {"", alias}
    ]


def refusal(query: exp.Query, table: exp.Table, waited: Sequence[Waited]) -> tuple[str, str] | None:
    """Return what is wrong with a join and the remedy, if anything is."""
    name, join = f"{table.db}.{table.name}", table.parent
    if not isinstance(join, exp.Join) or join.side != "LEFT":
        what = f"late: {name} has no window, and no row waits for it in a LEFT JOIN"
        return what, WITHOUT_WINDOW
    if not isinstance(query, exp.Select) or join.parent is not query:
        return "late: its join is in a subquery", "write it in FROM of the outermost SELECT"
    if len(waited) != 1:
        said = "nothing in ON bounds" if not waited else f"ON has {len(waited)} bounds of"
        time = waited[0].column.name if waited else "ts"
        remedy = f"write one: {table.alias_or_name}.{time} <= o.ts + INTERVAL '15 minutes'"
        return f"late: {said} the time of {name}", remedy
    since = waited[0].since
    if since.table not in set(_always_there(query)):
        what = f"late: {since.table}.{since.name} is NULL where a join has no match"
        return what, "bound the time by a table of FROM; derive another join as a table of its own"
    return None


def shown_since(query: exp.Query, since: exp.Column) -> str | None:
    """Return the output column that is the time from which a row waits."""
    for output in query.selects:
        if output.unalias() == since:
            return output.alias_or_name
    return None


def _always_there(query: exp.Select) -> Iterator[str]:
    """Yield the names of the tables that every row of the joins has a row of."""
    joins = query.args.get("joins") or []
    if any(join.side in {"RIGHT", "FULL"} for join in joins):
        return
    for source in (query.args["from_"], *(join for join in joins if not join.side)):
        yield source.this.alias_or_name


def _conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    inner = None if condition is None else condition.unnest()
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.left)
        yield from _conjuncts(inner.right)
    elif inner is not None:
        yield inner


def _compared(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield what a condition says is at most what."""
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        yield condition.this.unnest(), condition.args["high"].unnest()
    is_right = _UPPER.get(type(condition))
    if is_right is not None:
        left, right = condition.this.unnest(), condition.expression.unnest()
        yield (right, left) if is_right else (left, right)


def _since(upper: exp.Expr) -> tuple[exp.Column, int] | None:
    """Return the column and the microseconds that an expression adds up; None for any other."""
    upper = upper.unnest()
    if isinstance(upper, exp.Column):
        return upper, 0
    sign = _SIGNS.get(type(upper))
    added = upper.expression.unnest() if sign is not None else None
    below = _since(upper.this) if isinstance(added, exp.Interval) else None
    if sign is None or below is None or not isinstance(added, exp.Interval):
        return None
    return below[0], below[1] + sign * _length(added)


def _length(interval: exp.Interval) -> int:
    unit = str(interval.args["unit"].this).lower().removesuffix("s")
    return int(interval.this.this) * microseconds(f"1 {unit}")
