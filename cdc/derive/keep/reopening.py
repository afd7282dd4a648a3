"""Brings a table to a cut in two commits where late rows were admitted since the last one.

The first has all else that the cut changes. So the second has what the admission changes, nothing
more, and says why: a reader of changes can tell it from what happened in the source.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import rows
from cdc.derive.engine.late_facts import ADMITTED_AT, REASON
from cdc.derive.late.facts import state_of
from cdc.derive.late.late_rows import CUT
from cdc.derive.late.notes import ADMITTED
from cdc.derive.step.mark import mark_facts
from cdc.derive.step.ready import Step, Steps
from cdc.failpoints import Failpoint, reach
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table.positions import open_table
from cdc.tables import TableId

Why = Sequence[Mapping[str, Any]]
Bring = Callable[[Definition, Why], Steps[Step]]
"""Brings the table of a definition to the cut, in a commit that says so much of admissions."""


@dataclass(frozen=True, slots=True)
class Reopening:
    """Brings a table from the last cut, ``before``, to its ``inputs`` at the next one."""

    definition: Definition
    inputs: Mapping[TableId, Input]
    before: DerivedEntry

    def bring(self, bring: Bring) -> Steps[Step]:
        """Bring the table to the cut: what was admitted since comes last, by itself."""
        late, why = self.definition.late, self._why()
        if late is None or not why:
            return (yield from bring(self.definition, ()))
        then = replace(late, admissions=self.before.at_cut)
        first = yield from bring(replace(self.definition, late=then), ())
        reach(Failpoint.BEFORE_WINDOWS_REOPEN)
        last = yield from bring(self.definition, why)
        reach(Failpoint.AFTER_WINDOWS_REOPEN)
        return replace(last, added=first.added + last.added, removed=first.removed + last.removed)

    def _why(self) -> Why:
        """Return what was admitted since the last cut, and is in no commit of the table yet."""
        late, at_cut = self.definition.late, self.before.at_cut
        is_its = self.before.version >= 0 and self.before.definition == self.definition.hash
        if late is None or late.policy != "aside" or not is_its:
            return ()
        opened = self.inputs[late.rows].open()
        state = state_of(mark_facts(opened))
        if state is None or state.admitted <= at_cut or state.admitted <= self._reopened():
            return ()
        names = [CUT, REASON, ADMITTED_AT]
        found = rows(opened, names, f"WHERE {ADMITTED} AND {CUT} > {at_cut:d}").read_all()
        counted = Counter(zip(*(found[name].to_pylist() for name in names), strict=True))
        return [
            {"cut": cut, "reason": reason, "asked_at": asked_at.isoformat(), "rows": count}
            for (cut, reason, asked_at), count in sorted(counted.items())
        ]

    def _reopened(self) -> int:
        """Return the newest cut whose admissions the newest commit of the table has."""
        table = open_table(self.before.path)
        facts = {} if table is None else mark_facts(table)
        return max((int(one["cut"]) for one in facts.get("admitted", ())), default=0)
