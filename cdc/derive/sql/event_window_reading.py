"""Read ``tumble``, ``hop`` and ``sessions`` in FROM and JOIN."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, cast

from sqlglot import exp

from cdc.derive.sql.event_window import ARGUMENT, EventWindow, Form
from cdc.derive.sql.place import Reporter, start_of
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.queries import column_problems
from cdc.source.predicate.parse import folded_name

SPELLINGS: Final[dict[str, str]] = {
    "tumble": "tumble(schema.table, ts, INTERVAL '1 hour')",
    "hop": "hop(schema.table, ts, INTERVAL '5 minutes', INTERVAL '1 hour')",
    "sessions": "sessions(schema.table, ts, INTERVAL '30 minutes', key)",
}
MOST_HOPS: Final = 100
LONGEST: Final = timedelta(days=36_500)
_MICROSECOND: Final = timedelta(microseconds=1)
_UNITS: Final = re.compile(r"(DAY|HOUR|MINUTE|SECOND)S?")
_MONTHS: Final = re.compile(r"(MON|MONTH|QUARTER|YEAR|YR|Y|DECADE|CENTURY|MILLENNIUM)S?|CENTURIES")
_WHOLE: Final = re.compile(r"[+-]?\d{1,15}")
_ORIGIN: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_INTERVAL: Final = (
    "write one whole number of days, hours, minutes or seconds: INTERVAL '90 minutes'"
)


class _CallError(Exception):
    """Says what is wrong with a call, where, and what to write instead."""

    def __init__(self, node: exp.Expr, what: str, remedy: str) -> None:
        super().__init__(what)
        self.node, self.what, self.remedy = node, what, remedy


def read_event_windows(report: Reporter, calls: Iterable[exp.Anonymous]) -> list[Problem]:
    """Replace calls of windows by the tables that they name, with an EventWindow.

    Return the problems; other calls stay as they are.
    """
    problems: list[Problem] = []
    for call in calls:
        name = str(call.this).lower()
        if name in SPELLINGS:
            try:
                problems += _replace(report, call, cast("Form", name))
            except _CallError as error:
                problems.append(report.on(error.node, error.what, error.remedy))
    return problems


def _replace(report: Reporter, call: exp.Anonymous, form: Form) -> list[Problem]:
    place = call.parent
    if not isinstance(place, exp.Table) or place.args.get("db"):
        raise _CallError(call, f"{form} is refused here", f"write FROM {SPELLINGS[form]}")
    for argument, value in place.args.items():
        if value and argument not in {"this", "alias"}:
            raise _CallError(call, f"{argument.upper()} is refused with {form}", "leave it out")
    given = call.expressions
    if len(given) < _fewest(form):
        raise _CallError(call, f"{form} lacks arguments", f"write {SPELLINGS[form]}")
    table, time, *rest = given
    schema, name = _table(call, form, table)
    columns = [time, *(rest[1:] if form == "sessions" else [])]
    problems = [each for column in columns for each in _column(report, call, form, column)]
    start = start_of(call)
    place.set("this", name)
    place.set("db", schema)
    place.set(ARGUMENT, _window(call, form, time, rest))
    place.meta["start"] = start
    return problems


def _fewest(form: Form) -> int:
    return 4 if form == "hop" else 3


def _table(call: exp.Expr, form: Form, node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the schema's and the table's name."""
    schema = node.args.get("table")
    plain = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)
    if not plain or schema is None or node.args.get("db"):
        what = f"the first argument of {form} is no table"
        where = node if isinstance(node, exp.Column) else call
        raise _CallError(where, what, "write schema.table; derive a query as a table of its own")
    return schema, node.this


def _column(report: Reporter, call: exp.Expr, form: Form, node: exp.Expr) -> Iterator[Problem]:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        what = f"an argument of {form} is no column"
        raise _CallError(call, what, f"write {SPELLINGS[form]}")
    if node.args.get("table"):
        what = f"a column in {form} has a table"
        raise _CallError(node, what, "write the name of the column alone")
    yield from column_problems(report, node)


def _window(call: exp.Expr, form: Form, time: exp.Expr, rest: Sequence[exp.Expr]) -> EventWindow:
    name = folded_name(time.this)
    length = _length(call, form, rest[0])
    if form == "sessions":
        keys = tuple(folded_name(key.this) for key in rest[1:])
        return EventWindow(form=form, time=name, length=length, keys=keys)
    slide, after = length, list(rest[1:])
    if form == "hop":
        length = _length(call, form, after.pop(0))
        _refuse_hops(call, slide, length)
    origin = _origin(call, form, after) % slide
    return EventWindow(form=form, time=name, length=length, slide=slide, origin=origin)


def _refuse_hops(call: exp.Expr, slide: int, length: int) -> None:
    if length % slide:
        what = "the size of hop is not a whole multiple of its slide"
        raise _CallError(call, what, "write the slide first, and a size of 1 to 100 times as much")
    if length // slide > MOST_HOPS:
        what = f"each row would be in {length // slide} windows, and may be in {MOST_HOPS}"
        raise _CallError(call, what, "write a longer slide, or use RANGE in OVER")


def _length(call: exp.Expr, form: Form, node: exp.Expr) -> int:
    """Return the microseconds of an interval."""
    unit = node.args.get("unit")
    named = str(unit.this).upper() if isinstance(unit, exp.Var) else ""
    if _MONTHS.fullmatch(named):
        what = f"{form} by months or years is refused"
        raise _CallError(call, what, "use date_trunc('month', ts): months differ in length")
    amount = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    whole = isinstance(node, exp.Interval) and _WHOLE.fullmatch(amount)
    if not whole or not _UNITS.fullmatch(named):
        raise _CallError(call, f"this interval of {form} is refused", _INTERVAL)
    unit_length = timedelta(**{named.lower().removesuffix("s") + "s": 1})
    length = int(amount) * (unit_length // _MICROSECOND)
    if not 0 < length <= LONGEST // _MICROSECOND:
        what = f"an interval of {form} is longer than {LONGEST.days} days"
        what = f"an interval of {form} is not positive" if length <= 0 else what
        raise _CallError(call, what, "write one from INTERVAL '1 second'")
    return length


def _origin(call: exp.Expr, form: Form, given: Sequence[exp.Expr]) -> int:
    """Return the microseconds since 1970 of the start that may be given."""
    if not given:
        return 0
    moment = _moment(given[0]) if len(given) == 1 else None
    if moment is None:
        what = f"the last argument of {form} is no origin"
        raise _CallError(call, what, "leave it out, or write TIMESTAMP '2024-01-01 00:00', in UTC")
    return (moment - datetime(1970, 1, 1)) // _MICROSECOND  # noqa: DTZ001 - both are in UTC


def _moment(node: exp.Expr) -> datetime | None:
    if not isinstance(node, exp.Cast) or node.to.this != exp.DType.TIMESTAMP:
        return None
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    try:
        return datetime.fromisoformat(text) if _ORIGIN.fullmatch(text) else None
    except ValueError:
        return None
