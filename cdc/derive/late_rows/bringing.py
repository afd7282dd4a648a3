"""Brings a table of late rows to a cut: the rows and the watermark, in one commit.

The commit has the place in the log up to which it has seen everything. So a step that is repeated
begins behind it, and no late row is there twice.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.apply.local.arrow import plain_values
from cdc.derive.engine.inputs import row_count
from cdc.derive.engine.inputs import rows as rows_of
from cdc.derive.late.facts import LateState, state_of
from cdc.derive.late.late_rows import EFFECT, OFFSET, START, Judge, Place
from cdc.derive.late.rule import Bound, LateRule
from cdc.derive.late_rows.input_log import LogSlice
from cdc.derive.late_rows.input_log import Place as LogPlace
from cdc.derive.late_rows.rows_commit import add_rows
from cdc.derive.late_rows.rows_table import rows_table
from cdc.derive.step.limits import Cost, Limits
from cdc.derive.step.mark import Mark, mark_facts
from cdc.derive.step.step import Step
from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.delta import delta_table
from cdc.lake.table.positions import open_table

_EVERY: Final = 100
"""After so many cuts the place is written although nothing was late and no watermark moved."""
Read = Callable[[LogPlace], LogSlice]


@dataclass(kw_only=True)
class LateBringing:
    """What a step is made of; ``read`` gives the log beyond a place, up to the cut of the mark."""

    rule: LateRule
    key: Sequence[str]  # of the input; empty if it has none
    path: str
    mark: Mark
    limits: Limits
    read: Read

    def bring(self, *, again: bool = False) -> Step:
        """Judge what the log has beyond the last step; with ``again``, all that it had seen.

        Raises TABLE_STOPPED where the log cannot be read, and if it says ``again`` something else
        than the table has. The table stays as it is then.
        """
        began = time.monotonic()
        self._refuse_keyless()
        table = open_table(self.path)
        facts = {} if table is None else mark_facts(table)
        known = state_of(facts) if facts.get("definition") == self.mark.definition else None
        stored = None if known is None else table
        judge = Judge(self.rule)
        if stored is not None and known is not None:
            if again:
                self._compare(stored, known)
            judge.state, judge.frozen = known.seen, self._frozen(stored)
        found = self.read(known.place if known else {})
        rows = list(judge.judge(found.transactions))
        begun = known.begun if known else found.begun
        state = LateState(seen=judge.state, place=found.place, begun=begun)
        cost = Cost(mode="scoped", changed=len(rows), seconds=time.monotonic() - began)
        if stored is not None and not rows and self._is_same(known, state, facts["cut"]):
            return _step(stored, 0, cost)
        self._commit(stored, rows_table(found.columns, rows, self.mark.cut), state, cost)
        return _step(delta_table(self.path), len(rows), cost)

    def _refuse_keyless(self) -> None:
        if self.rule.policy == "aside" and not self.key:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"policy: aside needs a key of {self.rule.table}, to tell its rows apart",
                remedy="write policy: keep, which counts late rows, or give the table a key",
            )

    def _is_same(self, before: LateState | None, now: LateState, cut: int) -> bool:
        """Return whether the state that a cut left may stand for the one of now."""
        if before is None or self.mark.cut - cut >= _EVERY:
            return False
        shown = {replace(one.seen, newest=None, committed=None) for one in (before, now)}
        return len(shown) == 1 and before.seen.time(self.rule) == now.seen.time(self.rule)

    def _frozen(self, table: DeltaTable) -> set[Place]:
        """Return the keys that have a row or none in a final window, whatever the source has."""
        if self.rule.policy != "aside" or isinstance(self.rule.window, Bound):
            return set()
        rows = _read(table, [*self.key, START])
        return set(zip(*map(plain_values, rows.columns), strict=True))

    def _compare(self, table: DeltaTable, known: LateState) -> None:
        """Raise TABLE_STOPPED if the log says something else than what was recorded.

        Where it no longer has all that was judged, what was recorded is all that is left.
        """
        found = self.read({})
        if found.begun != known.begun:
            return
        rows = list(Judge(self.rule).judge(found.transactions))
        wanted = Counter((row.offset, row.effect.value, row.start) for row in rows)
        names = [OFFSET, EFFECT, START]
        have = Counter(zip(*map(plain_values, _read(table, names).columns), strict=True))
        upto = known.place["offset"]
        if Counter({one: n for one, n in wanted.items() if one[0] <= upto}) != have:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the log has other late rows than the {have.total():,} that were recorded",
                remedy="this is a bug of wal2lake: report it",
            )

    def _commit(
        self, table: DeltaTable | None, rows: pa.Table, state: LateState, cost: Cost
    ) -> None:
        mark = replace(self.mark, late=state.facts(self.rule), cost=asdict(cost))
        add_rows(self.path, rows, mark, self.limits.kept_hours, anew=table is None)


def _read(table: DeltaTable, names: Sequence[str]) -> pa.Table:
    return rows_of(table, list(names)).read_all()


def _step(table: DeltaTable, added: int, cost: Cost) -> Step:
    return Step(version=table.version(), rows=row_count(table), added=added, removed=0, cost=cost)
