"""Read ``cut_time()``, the source's commit time of the cut, which is a constant at each cut."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem

NAME: Final = "cut_time"
_FORM: Final = "write cut_time(), with nothing between the parentheses"
_VALUE: Final = "write it where a value stands: WHERE ts > cut_time() - INTERVAL '7 days'"


class CutTime(exp.Expression, exp.Func):
    """Stands for ``cut_time()`` in a tree; no engine knows the name that it is printed by."""

    arg_types = {}  # noqa: RUF012 - as all nodes have it


def read_cut_time(report: Reporter, calls: Iterable[exp.Anonymous]) -> list[Problem]:
    """Replace each of the calls that is one of cut_time() by its node; return the problems."""
    own = [one for one in calls if _is_call(one)]
    problems = [problem for call in own for problem in _wrong(report, call)]
    for call in [] if problems else own:
        node = CutTime()
        node.meta.update(call.meta)
        call.replace(node)
    return problems


def with_time(query: exp.Query, time: datetime) -> exp.Query:
    """Return the query with a constant for each call; the argument stays as it is."""
    tree = query.copy()
    text = time.astimezone(UTC).isoformat(" ", "microseconds")
    constant = exp.cast(exp.Literal.string(text), exp.DType.TIMESTAMPTZ)
    for node in list(tree.find_all(CutTime)):
        node.replace(constant.copy())
    return tree


def _is_call(node: exp.Anonymous) -> bool:
    """Return whether it is the call of the name alone: a quoted or qualified one is another's."""
    is_name = isinstance(node.this, str) and node.this.lower() == NAME
    return is_name and not isinstance(node.parent, exp.Dot)


def _wrong(report: Reporter, call: exp.Anonymous) -> Iterator[Problem]:
    if call.expressions:
        yield report.on(call, "cut_time() takes no arguments", _FORM)
    if isinstance(call.parent, exp.Table):
        yield report.on(call, "cut_time() is no table", _VALUE)
