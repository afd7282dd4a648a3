"""Read the conditions of DEFINE into terms, the columns that they need of a row, and slots."""

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from sqlglot import exp

from cdc.derive.pattern.expressions import AGGREGATES, FAR, looked_at, variable_of
from cdc.derive.pattern.running import Seen, Slot
from cdc.derive.pattern.terms import Computed, Constant, Here, Operation, Term, There, Total
from cdc.derive.sql import printing
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem

_OPERATIONS: Final[dict[type[exp.Expr], Operation]] = {
    exp.And: Operation.AND,
    exp.Or: Operation.OR,
    exp.Not: Operation.NOT,
    exp.EQ: Operation.EQUAL,
    exp.NEQ: Operation.UNEQUAL,
    exp.LT: Operation.LESS,
    exp.LTE: Operation.LESS_EQUAL,
    exp.GT: Operation.GREATER,
    exp.GTE: Operation.GREATER_EQUAL,
    exp.NullSafeNEQ: Operation.DISTINCT,
    exp.NullSafeEQ: Operation.SAME,
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Neg: Operation.SUBTRACT,
    exp.Between: Operation.AND,
    exp.In: Operation.IN,
    exp.Is: Operation.IS_NULL,
    exp.Coalesce: Operation.COALESCE,
    exp.Case: Operation.CASE,
}
_SEEN: Final[dict[type[exp.Expr], Seen]] = {
    exp.Count: Seen.COUNT,
    exp.Sum: Seen.SUM,
    exp.Min: Seen.MIN,
    exp.Max: Seen.MAX,
}
_STRICT: Final = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Paren,
    exp.Cast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Neg,
    exp.Abs,
    exp.Length,
    exp.Round,
    exp.Floor,
    exp.Ceil,
    exp.Interval,
    exp.Var,
    exp.TimestampTrunc,
    exp.Extract,
)
"""What is NULL where a column is: it may be computed of the row before it is known to be there."""
_FAR_FORMS: Final = (
    "between rows use comparisons, AND, OR, NOT, IS NULL, BETWEEN, IN, CASE, coalesce, + - *; "
    "compute the rest within first(...), last(...) or prev(...)"
)


class TermReader:
    """Reads conditions one after the other; what they have in common is kept once."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._columns: dict[str, int] = {}
        self._slots: dict[Slot, int] = {}
        self.problems = list[Problem]()

    @property
    def columns(self) -> tuple[str, ...]:
        """Return what the terms need of a row, as expressions for DuckDB."""
        return tuple(self._columns)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Return what the terms need of the match so far."""
        return tuple(self._slots)

    def read(self, node: exp.Expr, variable: str) -> Term:
        """Return the term of a checked expression in the condition of a variable."""
        if isinstance(node, exp.Paren):
            return self.read(node.this, variable)
        if isinstance(node, exp.Boolean | exp.Null | exp.Literal):
            return Constant(_constant(node))
        if _is_here(node, variable):
            return Here(self._column(node))
        if isinstance(node, FAR):
            return self._far(node, variable)
        there = _variable_there(node)
        if there is not None:
            return There(self._slot(Slot(Seen.LAST, there)), self._column(node))
        return self._computed(node, variable)

    def _far(self, node: exp.Expr, variable: str) -> Term:
        if isinstance(node, AGGREGATES):
            column = None if isinstance(node.this, exp.Star) else self._column(node.this)
            return Total(self._slot(Slot(_SEEN[type(node)], _variable(node), column)))
        name, column = _variable(node), self._column(looked_at(node))
        if isinstance(node, exp.First):
            return There(self._slot(Slot(Seen.FIRST, name)), column)
        back = _distance(node)
        if name in {None, variable}:  # the current row is the last one of both
            return Here(column, back)
        return There(self._slot(Slot(Seen.LAST, name)), column, back)

    def _computed(self, node: exp.Expr, variable: str) -> Term:
        operation, operands = _OPERATIONS.get(type(node)), _OPERANDS.get(type(node), _sides)
        if operation is None:
            what = f"{node.key} of values of several rows is refused"
            self.problems.append(self._report.on(node, what, _FAR_FORMS))
            return Constant(None)
        if isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null):
            operation = Operation.IS_TRUE if node.expression.this else Operation.IS_FALSE
        return Computed(operation, tuple(self.read(each, variable) for each in operands(node)))

    def _column(self, node: exp.Expr) -> int:
        """Return the number of the column that has what a row alone gives."""
        tree = node.copy()
        for column in [tree] if isinstance(tree, exp.Column) else tree.find_all(exp.Column):
            column.set("table", None)
        return self._columns.setdefault(printing.duckdb(tree), len(self._columns))

    def _slot(self, slot: Slot) -> int:
        return self._slots.setdefault(slot, len(self._slots))


def _is_here(node: exp.Expr, variable: str) -> bool:
    """Return whether the current row alone gives the value."""
    if any(True for _ in node.find_all(*FAR)):
        return False
    return {variable_of(column) for column in node.find_all(exp.Column)} <= {None, variable}


def _variable_there(node: exp.Expr) -> str | None:
    """Return the variable whose last row alone gives the value; None if there is no such one."""
    if not all(isinstance(part, _STRICT) for part in node.walk()):
        return None
    names = {variable_of(column) for column in node.find_all(exp.Column)}
    return names.pop() if len(names) == 1 else None


def _variable(node: exp.Expr) -> str | None:
    return next((variable_of(column) for column in node.find_all(exp.Column)), None)


def _distance(node: exp.Expr) -> int:
    """Return how many rows PREV goes back, which LAST does not."""
    if not isinstance(node, exp.Anonymous):
        return 0
    return int(node.expressions[1].this) if len(node.expressions) > 1 else 1


def _constant(node: exp.Expr) -> bool | int | Decimal | str | None:
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    text = str(node.this)
    if node.is_string:
        return text
    return int(text) if text.isdecimal() else Decimal(text)


def _sides(node: exp.Expr) -> list[exp.Expr]:
    return [each for each in (node.this, node.expression) if each]


def _listed(node: exp.Expr) -> list[exp.Expr]:
    return [node.this, *node.expressions]


def _between(node: exp.Expr) -> list[exp.Expr]:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    return [low, exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())]


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """Return condition and value of each branch in turn, and the default."""
    parts: list[exp.Expr] = []
    for branch in node.args["ifs"]:
        when = branch.this
        if node.this is not None:
            when = exp.EQ(this=node.this.copy(), expression=when.copy())
        parts += [when, branch.args["true"]]
    default: exp.Expr | None = node.args.get("default")
    return [*parts, default or exp.null()]


_OPERANDS: Final[dict[type[exp.Expr], Callable[[exp.Expr], list[exp.Expr]]]] = {
    exp.And: lambda node: list(node.flatten()),
    exp.Or: lambda node: list(node.flatten()),
    exp.Between: _between,
    exp.In: _listed,
    exp.Coalesce: _listed,
    exp.Is: lambda node: [node.this],
    exp.Neg: lambda node: [exp.Literal.number(0), node.this],
    exp.Case: _branches,
}
"""How the operands of a node are found where they are not its two sides."""
