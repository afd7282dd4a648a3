"""Read ``FOR SYSTEM_TIME AS OF`` in FROM and JOIN, and refuse what has no meaning there."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from sqlglot import exp

from cdc.derive.as_of.moment import (
    FACTS,
    Facts,
    bare_columns,
    is_by_commit,
    sources,
    used_columns,
)
from cdc.derive.sql.cut_time import CutTime
from cdc.derive.sql.event_window import ARGUMENT
from cdc.derive.sql.nodes import AS_OF
from cdc.derive.sql.place import Reporter, start_of
from cdc.derive.sql.problem import Problem
from cdc.source.predicate.parse import folded_name

_FORMS: Final = (
    "write AS OF o._commit for the transaction that inserted the row of o, AS OF o.paid_at, or "
    "AS OF TIMESTAMPTZ '2024-01-31 12:00:00+00'"
)
_JOIN: Final = (
    "write JOIN shop.customers FOR SYSTEM_TIME AS OF o.paid_at AS c ON c.id = o.customer_id"
)
_KINDS: Final = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ}
Complaint = tuple[exp.Expr, str, str]


def read_as_of(report: Reporter, query: exp.Query) -> list[Problem]:
    """Give each table its moment; return the problems."""
    problems = []
    for select in list(query.find_all(exp.Select)):
        for number, source in enumerate(sources(select)):
            table = source.this
            if isinstance(table, exp.Table) and table.args.get("version") is not None:
                found = _complaint(select, number)
                if found is not None:
                    problems.append(report.on(*found))
                    continue
                _take(report, select, table)
    return problems


def _take(report: Reporter, select: exp.Select, table: exp.Table) -> None:
    moment = table.args["version"].expression
    constant = _constant(moment)
    if constant is not None:
        moment.set("to", exp.DataType.build("timestamptz"))
        moment.set("this", exp.Literal.string(constant.isoformat(" ")))
    table.set("version", None)
    table.set(AS_OF, moment)
    _note(report, select, table)
    if is_by_commit(moment):
        _note(report, select, _named(select, moment.table))


def _note(report: Reporter, select: exp.Select, table: exp.Expr) -> None:
    """Keep the places, which a tree loses when its names are folded."""

    def places(columns: Iterator[exp.Column]) -> dict[str, tuple[int, int]]:
        return {folded_name(one.this): report.place(start_of(one)) for one in columns}

    name = table.alias_or_name
    table.meta[FACTS] = Facts(
        place=report.place(start_of(table.args["db"])),
        columns=places(used_columns(select, name)),
        bare=places(bare_columns(select)),
    )


def _complaint(select: exp.Select, number: int) -> Complaint | None:
    source = sources(select)[number]
    table = source.this
    version = table.args["version"]
    moment = version.expression
    if version.name != "TIMESTAMP" or version.text("kind") != "AS OF":
        return table, "of the FOR clauses, only FOR SYSTEM_TIME AS OF is taken", _FORMS
    if table.args.get("db") is None:
        what = f"{table.name} is no captured table, and has no history"
        return table, what, "write FOR SYSTEM_TIME where the query reads schema.table"
    if _constant(moment) is not None:
        return _wrong_join(select, source)
    if not isinstance(moment, exp.Column) or not isinstance(moment.this, exp.Identifier):
        return _no_moment(table, moment)
    if not moment.table:
        return moment, f"{moment.name} has no table", _FORMS
    return (
        _wrong_join(select, source)
        or _wrong_row(sources(select)[:number], moment)
        or _without_key(source, table.alias_or_name)
    )


def _no_moment(table: exp.Table, moment: exp.Expr) -> Complaint:
    if isinstance(moment, CutTime):
        what = "AS OF cut_time() is the table as it is at the cut"
        return moment, what, "leave FOR SYSTEM_TIME out"
    return table, "FOR SYSTEM_TIME AS OF takes a column or a constant", _FORMS


def _constant(moment: exp.Expr) -> datetime | None:
    """Return a constant time in UTC, without its zone, which engines write in several ways."""
    if not isinstance(moment, exp.Cast) or moment.to.this not in _KINDS:
        return None
    try:
        time = datetime.fromisoformat(moment.this.name)
    except ValueError:
        return None
    zoned = time.tzinfo is not None and moment.to.this == exp.DType.TIMESTAMPTZ
    return (time.astimezone(UTC) if zoned else time).replace(tzinfo=None)


def _wrong_join(select: exp.Select, source: exp.Expr) -> Complaint | None:
    """Return what is wrong with the joins of a table that is read as it was, if anything is.

    A condition on the rows of a table has a place only where no other join adds rows without them.
    """
    joins = select.args.get("joins") or []
    if any(one.side in {"RIGHT", "FULL"} for one in joins):
        what = "FOR SYSTEM_TIME beside a RIGHT or FULL join is refused"
        return source.this, what, "write a LEFT JOIN, or derive the join as a table of its own"
    if isinstance(source, exp.Join) and source.args.get("using"):
        return source.this, "FOR SYSTEM_TIME with USING is refused", f"name the columns: {_JOIN}"
    return None


def _wrong_row(before: Sequence[exp.Expr], moment: exp.Column) -> Complaint | None:
    """Return what is wrong with the row that a moment is of, if anything is.

    It has to be a row of a table that stands earlier in the same FROM.
    """
    found = [one for one in before if one.this.alias_or_name.lower() == moment.table.lower()]
    if len(found) != 1:
        what = f"{moment.table} is no table before it in the same FROM"
        return moment, what, f"name one, and join it by its key: {_JOIN}"
    (source,) = found
    if not is_by_commit(moment):
        return None
    if not isinstance(source.this, exp.Table) or source.this.args.get("db") is None:
        what = f"{moment.table} is a query, whose rows no transaction inserts"
        return moment, what, "name a captured table, or write AS OF a column with the time"
    if isinstance(source, exp.Join) and source.side and source.args.get("using"):
        return moment, f"{moment.table} is joined by USING", f"name the columns: {_JOIN}"
    window = source.this.args.get(ARGUMENT)
    if window is not None and window.form == "sessions":
        what = f"{moment.table} is in sessions"
        return moment, what, "derive the join as a table of its own, and put that into sessions"
    return None


def _without_key(source: exp.Expr, name: str) -> Complaint | None:
    on = source.args.get("on")
    conditions = on.flatten() if isinstance(on, exp.And) else [on]
    if any(isinstance(one, exp.EQ) and _joins(one, name) for one in conditions):
        return None
    what = "FOR SYSTEM_TIME AS OF a row needs an equality of columns in ON"
    return source.this, what, _JOIN


def _joins(equality: exp.EQ, name: str) -> bool:
    """Return whether an equality is one of a column of the table and of another one's."""
    left, right = equality.left.unnest(), equality.right.unnest()
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return False
    own = [one.table.lower() == name.lower() for one in (left, right) if one.table]
    return sorted(own) == [False, True]


def _named(select: exp.Select, name: str) -> exp.Expr:
    found: exp.Expr = next(
        one.this for one in sources(select) if one.this.alias_or_name.lower() == name.lower()
    )
    return found
