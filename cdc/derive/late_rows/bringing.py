"""Brings a table of late rows to a cut: the rows and the watermark, in one commit.

The commit has the place in the log up to which it has seen everything. So a step that is repeated
begins behind it, and no late row is there twice. What operators admit is in the same commit: it
counts before the events that the step has read, and those that were admitted are found no more.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.engine.inputs import row_count
from cdc.derive.engine.inputs import rows as rows_of
from cdc.derive.late.facts import LateState, state_of
from cdc.derive.late.late_rows import EFFECT, OFFSET, Judge
from cdc.derive.late.notes import ADMITTED
from cdc.derive.late.rule import START, Bound, LateRule
from cdc.derive.late.watermark import Watermark
from cdc.derive.late_rows.admitting import NOTHING, LateTable, Taken, fitted, take
from cdc.derive.late_rows.input_log import LogSlice
from cdc.derive.late_rows.input_log import Place as LogPlace
from cdc.derive.late_rows.rows_commit import add_rows
from cdc.derive.late_rows.rows_table import rows_table
from cdc.derive.step.limits import Cost, Limits
from cdc.derive.step.mark import Mark, mark_facts
from cdc.derive.step.ready import Step
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.files.delta import delta_table
from cdc.lake.table.plain_values import plain_values
from cdc.lake.table.positions import open_table
from cdc.state.admissions import Admission

_EVERY: Final = 100
"""After so many cuts the place is written although nothing was late and no watermark moved."""
Read = Callable[[LogPlace], LogSlice]


@dataclass(kw_only=True)
class LateBringing:
    """Brings a table of late rows to the cut of the mark.

    ``read`` gives the log beyond a place, up to that cut.
    """

    rule: LateRule
    key: Sequence[str]  # of the input; empty if it has none
    path: str
    mark: Mark
    limits: Limits
    read: Read
    asked: Sequence[Admission] = ()

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
        if again and stored is not None and known is not None:
            self._compare(stored, known)
        judge, taken = self._begin(table if facts else None, known)
        found = self.read(known.place if known else {})
        rows = list(judge.judge(found.transactions))
        state = LateState(
            seen=judge.state,
            place=found.place,
            begun=known.begun if known else found.begun,
            admitted=self.mark.cut if taken.why else known.admitted if known else 0,
        )
        cost = Cost(mode="scoped", changed=len(rows), seconds=time.monotonic() - began)
        is_new = bool(rows or taken.rows)
        if stored is not None and not is_new and self._is_same(known, state, facts["cut"]):
            return _step(stored, 0, cost)
        noted = rows_table(found.columns, rows, self.mark.cut)
        added = pa.concat_tables([noted, *(fitted(one, found.columns) for one in taken.rows)])
        self._commit(stored, added, replace(self.mark, admitted=taken.why), state, cost)
        return _step(delta_table(self.path), len(rows), cost)

    def _begin(self, table: DeltaTable | None, known: LateState | None) -> tuple[Judge, Taken]:
        """Return the judge as the last step left it, and what is admitted now.

        Where another rule begins, what was admitted by the last one counts on.
        """
        if table is None or self.rule.policy != "aside":
            return Judge(self.rule, known.seen if known else Watermark()), NOTHING
        late = LateTable(table, self.rule, self.key)
        if known is None:
            carried = late.carried()
            if carried is None:
                return Judge(self.rule), NOTHING
            return Judge(self.rule, admitted=late.admitted(carried)), Taken(rows=[carried])
        taken = take(late, self.asked, self.mark.cut, known.place["offset"], self.limits.memory_mb)
        frozen = set() if isinstance(self.rule.window, Bound) else late.frozen() - taken.places
        return Judge(self.rule, known.seen, frozen), taken

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

    def _compare(self, table: DeltaTable, known: LateState) -> None:
        """Raise TABLE_STOPPED if the log says something else than what was recorded.

        Where it no longer has all that was judged, what was recorded is all that is left.
        """
        found = self.read({})
        if found.begun != known.begun:
            return
        late = LateTable(table, self.rule, self.key)
        admitted = late.admitted(late.admitted_rows()) if self.rule.policy == "aside" else []
        rows = list(Judge(self.rule, admitted=admitted).judge(found.transactions))
        wanted = Counter((row.offset, row.effect.value, row.start) for row in rows)
        names = [OFFSET, EFFECT, START]
        recorded = _read(table, names, f"WHERE NOT ({ADMITTED})")
        have = Counter(zip(*map(plain_values, recorded.columns), strict=True))
        upto = known.place["offset"]
        if Counter({one: n for one, n in wanted.items() if one[0] <= upto}) != have:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the log has other late rows than the {have.total():,} that were recorded",
                remedy="this is a bug of wal2lake: report it",
            )

    def _commit(
        self, table: DeltaTable | None, rows: pa.Table, mark: Mark, state: LateState, cost: Cost
    ) -> None:
        mark = replace(mark, late=state.facts(self.rule), cost=asdict(cost))
        if mark.admitted:
            reach(Failpoint.BEFORE_ADMIT_COMMIT)
        add_rows(self.path, rows, mark, self.limits.kept_hours, anew=table is None)
        if mark.admitted:
            reach(Failpoint.AFTER_ADMIT_COMMIT)


def _read(table: DeltaTable, names: Sequence[str], condition: str) -> pa.Table:
    return rows_of(table, list(names), condition).read_all()


def _step(table: DeltaTable, added: int, cost: Cost) -> Step:
    return Step(version=table.version(), rows=row_count(table), added=added, removed=0, cost=cost)
