"""Check window functions."""

from typing import Final

from sqlglot import exp

from cdc.derive.sql import refused
from cdc.derive.sql.problem import Complaint

IN_ORDER: Final = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
)
_ANY_ORDER: Final = (exp.Sum, exp.Count, exp.Min, exp.Max)
_PLACE_BY_PLACE: Final = (exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)


def window_complaint(node: exp.Expr) -> Complaint | None:
    """Return what is wrong with a window, or with a window function without one."""
    if isinstance(node, IN_ORDER) and not isinstance(node.parent, exp.Window):
        return f"{node.sql_name().lower()}() needs OVER", "write OVER (ORDER BY ...)"
    return _window(node) if isinstance(node, exp.Window) else None


def _window(node: exp.Window) -> Complaint | None:
    function = node.this.this if isinstance(node.this, exp.Filter) else node.this
    if not isinstance(function, (*IN_ORDER, *_ANY_ORDER)):
        name = function.key
        return f"{name} OVER is refused", "use a rank, lag, lead, a value, sum, count, min or max"
    order = node.args.get("order")
    if isinstance(function, IN_ORDER) and order is None:
        name = function.sql_name().lower()
        return f"{name}() has no ORDER BY", "add ORDER BY, ending in a column that makes it unique"
    if isinstance(function, _PLACE_BY_PLACE) and not _ends_in_column(order):
        return "the order of the window may have ties", "end it in a column that makes it unique"
    return _frame(node, function)


def _frame(node: exp.Window, function: exp.Expr) -> Complaint | None:
    """The one frame that is taken reaches back by an interval of time."""
    spec, order = node.args.get("spec"), node.args.get("order")
    if spec is None:
        return None
    reaches_back = (spec.args.get("kind"), spec.args.get("start_side")) == ("RANGE", "PRECEDING")
    by_time = isinstance(spec.args.get("start"), exp.Interval)
    to_itself = spec.args.get("end") == "CURRENT ROW"
    one_column = order is not None and len(order.expressions) == 1 and _ends_in_column(order)
    if reaches_back and by_time and to_itself and one_column and isinstance(function, _ANY_ORDER):
        return None
    return "this frame is refused", refused.FRAME


def _ends_in_column(order: exp.Expr | None) -> bool:
    return order is not None and isinstance(order.expressions[-1].this, exp.Column)
