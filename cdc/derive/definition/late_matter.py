"""Read the keys ``late`` and ``emit`` of a definition against its query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict
from sqlglot import exp

from cdc.derive.definition.durations import is_duration, microseconds
from cdc.derive.definition.late_bound import (
    WITHOUT_WINDOW,
    joined_tables,
    refusal,
    shown_since,
    upper_bounds,
)
from cdc.derive.late.rule import FINAL, Bound, LateRule, Policy
from cdc.derive.sql.event_window import ARGUMENT, EventWindow
from cdc.tables import TableId

Emit = Literal["updates", "final"]
Complaint = tuple[tuple[str, ...], str, str]
"""The keys that lead to what is wrong in the front matter, what it is, and the remedy."""
COLUMN: Final = ("late", "column")
_START, _END = "window_start", "window_end"


class LateMatter(BaseModel):
    """Defines the keys of ``late``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    column: str
    allowed: Annotated[str, AfterValidator(is_duration)]
    policy: Policy = "keep"
    idle: Annotated[str, AfterValidator(is_duration)] | None = None


@dataclass(frozen=True, slots=True)
class LateQuery:
    """Makes a definition's rule of lateness from what its keys say and from its query.

    The query is normalized; ``rows`` is the table of its late rows.
    """

    late: LateMatter
    emit: Emit
    query: exp.Query
    rows: TableId

    def rule(self) -> tuple[LateRule | None, list[Complaint]]:
        """Return the rule, or what is wrong."""
        chosen = [table for table in _windows(self.query) if _is_named(table, self.late.column)]
        if not chosen and (joined := joined_tables(self.query, self.late.column)):
            return self._bounded(joined)
        if len(chosen) != 1:
            return None, [self._not_one(chosen)]
        (table,) = chosen
        window: EventWindow = table.args[ARGUMENT]
        shown = self._shown(table)
        wrong = list(self._wrong(table, window, shown))
        if wrong:
            return None, wrong
        shown = shown or {}
        last = shown.get(_END) or shown[_START]
        return self._rule_of(table, window, last, shows_end=_END in shown), []

    def _bounded(self, joined: Sequence[exp.Table]) -> tuple[LateRule | None, list[Complaint]]:
        """Return the rule for a table that rows wait for, or what is wrong."""
        table, *more = joined
        name = self.late.column.rpartition(".")[-1]
        if more:
            listed = ", ".join(f"{one.alias_or_name}.{name}" for one in joined)
            what = f"late: the query has {len(joined)} tables with {self.late.column}"
            return None, [(COLUMN, what, f"name one: {listed}")]
        waited = upper_bounds(table, name)
        if refused := refusal(self.query, table, waited):
            return None, [(COLUMN, *refused)]
        since = waited[0].since
        shown = shown_since(self.query, since)
        wrong = list(self._wrong_bounded(table, since, shown))
        if wrong or shown is None:
            return None, wrong
        return self._rule_of(table, waited[0].bound, shown), []

    def _rule_of(
        self, table: exp.Table, window: EventWindow | Bound, shown: str, *, shows_end: bool = False
    ) -> LateRule:
        return LateRule(
            table=TableId(table.db, table.name),
            window=window,
            shown=shown,
            shows_end=shows_end,
            allowed=microseconds(self.late.allowed),
            rows=self.rows,
            idle=None if self.late.idle is None else microseconds(self.late.idle),
            policy=self.late.policy,
            emits_final=self.emit == "final",
        )

    def _not_one(self, chosen: Sequence[exp.Table]) -> Complaint:
        column = self.late.column
        times = sorted({f"{t.db}.{t.name}.{t.args[ARGUMENT].time}" for t in _windows(self.query)})
        if chosen:
            what = f"late: the query has {len(chosen)} windows by {column}"
            return COLUMN, what, f"keep one, or name it: {', '.join(times)}"
        what = f"late: no window of the query is by {column}"
        remedy = f"choose one of {', '.join(times)}" if times else WITHOUT_WINDOW
        return COLUMN, what, remedy

    def _shown(self, table: exp.Table) -> dict[str, str] | None:
        """Return the output columns that are the window's start and end; None below a subquery."""
        if not isinstance(self.query, exp.Select) or table.parent_select is not self.query:
            return None
        found: dict[str, str] = {}
        for output in self.query.selects:
            column = output.unalias()
            is_its = isinstance(column, exp.Column) and column.table in {"", table.alias_or_name}
            if is_its and column.name in {_START, _END}:
                found.setdefault(column.name, output.alias_or_name)
        return found

    def _wrong(
        self, table: exp.Table, window: EventWindow, shown: dict[str, str] | None
    ) -> Iterator[Complaint]:
        sessions = window.form == "sessions"
        if shown is None:
            yield COLUMN, "late: its window is in a subquery", "write the window in FROM or JOIN"
        elif not (shown.keys() & ({_END} if sessions else {_START, _END})):
            remedy = f"add {table.alias_or_name}.{_END} to the SELECT"
            yield COLUMN, "late: the result does not have the end of its window", remedy
        yield from self._wrong_names()
        if self.late.policy == "aside":
            yield from self._wrong_twice(table)
        elif self.emit == "final":
            what = "emit: final needs policy: aside: a late row would change a final window"
            yield ("emit",), what, "write policy: aside in late"

    def _wrong_bounded(
        self, table: exp.Table, since: exp.Column, shown: str | None
    ) -> Iterator[Complaint]:
        if shown is None:
            what = "late: the result does not have the time from which its rows wait"
            yield COLUMN, what, f"add {since.table}.{since.name} to the SELECT"
        yield from self._wrong_names()
        if self.late.policy == "aside":
            yield from self._wrong_twice(table)

    def _wrong_names(self) -> Iterator[Complaint]:
        if FINAL in {one.alias_or_name for one in self.query.selects}:
            yield ("late",), f"late adds a column {FINAL}, which the query has", "rename that one"

    def _wrong_twice(self, table: exp.Table) -> Iterator[Complaint]:
        uses = [one for one in self.query.find_all(exp.Table) if _id(one) == _id(table)]
        if len(uses) > 1:
            what = f"late: policy: aside needs {table.db}.{table.name} once in the query"
            yield ("late", "policy"), what, "derive the other part as a table of its own"


def _windows(query: exp.Query) -> list[exp.Table]:
    return [table for table in query.find_all(exp.Table) if ARGUMENT in table.args]


def _is_named(table: exp.Table, column: str) -> bool:
    *qualifier, name = column.split(".")
    names = {(), (table.alias_or_name,), (table.name,), (table.db, table.name)}
    return name == table.args[ARGUMENT].time and tuple(qualifier) in names


def _id(table: exp.Table) -> tuple[str, str]:
    return table.db, table.name
