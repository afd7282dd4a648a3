"""Brings the tables of late rows to the cuts of a running job, from its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import key_of
from cdc.derive.late.rule import LateRule
from cdc.derive.late_rows.bringing import LateBringing
from cdc.derive.late_rows.input_log import InputLog
from cdc.derive.log.topic_rows import Recent
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import Mark
from cdc.derive.step.ready import Step
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.records.ledger import LedgerRow
from cdc.state.admissions import Admission
from cdc.tables import TableId


class Admits(Protocol):
    """Knows which late rows operators have admitted."""

    def of(self, table: TableId) -> list[Admission]: ...
    def done(self, admission: Admission) -> None: ...


logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LateTables:
    """Brings the tables of late rows of a job to each cut; only the thread that derives calls it.

    Without a ``log`` they stop. ``admits`` has what operators ask of them.
    """

    log: InputLog | None
    admits: Admits | None = None

    def bring(
        self,
        rule: LateRule,
        inputs: Mapping[TableId, Input],
        row: LedgerRow,
        recent: Recent | None,
        *,
        path: str,
        mark: Mark,
        limits: Limits,
        again: bool,
    ) -> Step:
        """Bring a table to the cut of ``row``; ``recent`` is what of the log is in memory."""
        if self.log is None:
            raise CdcError(ErrorKind.TABLE_STOPPED, "nobody reads the log for late rows")
        asked = [] if self.admits is None else self.admits.of(rule.rows)
        step = LateBringing(
            rule=rule,
            key=key_of(inputs[rule.table].open()),
            path=path,
            mark=mark,
            limits=limits,
            read=partial(self.log.read, rule, row=row, recent=recent),
            asked=asked,
        ).bring(again=again)
        self._end(asked)
        if step.added:
            logger.info("late rows", table=str(rule.rows), cut=row.cut, added=step.added)
        return step

    def _end(self, asked: Sequence[Admission]) -> None:
        """End what the table has, or what did not fit it."""
        if self.admits is None or not asked:
            return
        reach(Failpoint.BEFORE_ADMIT_END)
        for one in asked:
            self.admits.done(one)
        reach(Failpoint.AFTER_ADMIT_END)
