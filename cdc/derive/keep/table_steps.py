"""Brings a derived table of any kind to a cut: a query, a history, or late rows."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import structlog

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.keep.histories import Histories
from cdc.derive.keep.late_tables import LateTables
from cdc.derive.keep.reopening import Reopening, Why
from cdc.derive.keep.stored_table import StoredTable
from cdc.derive.log.topic_rows import Recent
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import Mark
from cdc.derive.step.measured import Measured
from cdc.derive.step.ready import Step, Steps
from cdc.derive.step.resident import ResidentTables
from cdc.derive.step.shared import Shared
from cdc.derive.step.step import Bringing
from cdc.derive.step.writer import TableWriter
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.tables import TableId

logger = structlog.get_logger(__name__)


class TableSteps:
    """Takes the steps of the derived tables of a lane; one thread at a time calls it."""

    def __init__(
        self,
        definitions: Iterable[Definition],
        lanes: int,
        shared: Shared,
        *,
        path_of: Callable[[TableId], str],
        limits: Limits,
        late: LateTables,
        histories: Histories | None,
    ) -> None:
        """Take the steps of these definitions; so many ``lanes`` have a part of the memory each."""
        self._path_of, self._limits, self._late = path_of, limits, late
        self._histories, self._shared = histories, shared
        found = list(definitions)
        self._writers = {one.table: self._writer(one.table) for one in found}
        self._stored = {
            one.table: StoredTable(path_of(one.table), is_calculated=not one.is_of_events)
            for one in found
        }
        self._measured = {table: Measured() for table in self._writers}
        memory_mb = limits.memory_mb // lanes
        self._resident = ResidentTables(memory_mb, limits.scratch, shared.known)
        self._recent: Recent | None = None

    @property
    def is_short(self) -> bool:
        """Return whether the memory has once been too small for all that is read again."""
        return self._resident.is_short

    def begin(self, recent: Recent | None) -> None:
        """Begin a cut; ``recent`` are the rows of the log that are in memory."""
        self._recent = recent

    def step(
        self,
        definition: Definition,
        inputs: Mapping[TableId, Input],
        row: LedgerRow,
        since: Mapping[TableId, Input] | None,
        before: DerivedEntry,
        *,
        anew: bool,
    ) -> Steps[Step]:
        """Bring a table to the cut of ``row``, from the one ``before``.

        ``since`` are the inputs of which it is known to have the rows; with ``anew`` all is
        calculated. Raises what the step of its kind raises.
        """
        began, stored = time.monotonic(), self._stored[definition.table]
        mark = Mark.at(definition.hash, row, inputs)
        if (damage := stored.damage(before)) is not None:
            self._clear(definition, damage)
            anew = True
        if anew:
            self._resident.close()  # what is kept may be wrong, or have rows to be forgotten
        try:
            if definition.late_rows is not None:
                return self._late_step(definition, inputs, row, mark, anew=anew)
            if definition.history is not None:
                step = self._history_step(definition, row, mark, anew=anew)
            else:
                bring = partial(self._query_step, inputs, mark, since, anew=anew)
                step = yield from Reopening(definition, inputs, before).bring(bring)
        except Exception:
            stored.suspect()
            raise
        _tell(definition.table, row.cut, step, time.monotonic() - began)
        return step

    def delta_id(self, table: TableId) -> str:
        """Return the id of a table's Delta table."""
        return self._stored[table].delta_id()

    def _clear(self, definition: Definition, damage: CdcError) -> None:
        """Delete a damaged table, if it can be calculated again.

        Raises TABLE_STOPPED otherwise.
        """
        table = definition.table
        if definition.is_of_events:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                damage.message,
                reason=damage.reason,
                remedy="put its files back, or move its directory away: the job then makes the "
                "table of what the log has",
            )
        logger.warning("derived table made anew", table=str(table), reason=damage.coded)
        self._writers[table].clear()
        self._stored[table].forget()

    def passed(self, definition: Definition, row: LedgerRow) -> None:
        """Note that a table has no other rows at the cut."""
        if definition.history is not None and self._histories is not None:
            self._histories.passed(definition, row)

    def close(self) -> None:
        """Give up what is kept in memory."""
        self._resident.close()

    def _query_step(
        self,
        inputs: Mapping[TableId, Input],
        mark: Mark,
        since: Mapping[TableId, Input] | None,
        definition: Definition,
        why: Why,
        *,
        anew: bool,
    ) -> Steps[Step]:
        return Bringing(
            definition=definition,
            inputs=inputs,
            writer=self._writers[definition.table],
            mark=replace(mark, admitted=why),
            limits=self._limits,
            resident=self._resident,
            open=self._shared.inputs.open,
            alone=self._shared.alone,
            newest=self._stored[definition.table].newest,
            measured=self._measured[definition.table],
        ).steps(since, anew=anew and not why)

    def _late_step(
        self,
        definition: Definition,
        inputs: Mapping[TableId, Input],
        row: LedgerRow,
        mark: Mark,
        *,
        anew: bool,
    ) -> Step:
        assert definition.late_rows is not None  # noqa: S101 - it is a table of late rows
        return self._late.bring(
            definition.late_rows,
            inputs,
            row,
            self._recent,
            path=self._path_of(definition.table),
            mark=mark,
            limits=self._limits,
            again=anew,
        )

    def _history_step(
        self, definition: Definition, row: LedgerRow, mark: Mark, *, anew: bool
    ) -> Step:
        if self._histories is None:
            raise CdcError(ErrorKind.INTERNAL, "nobody reads the log for histories")
        return self._histories.bring(
            definition,
            row,
            self._recent,
            writer=self._writers[definition.table],
            mark=mark,
            limits=self._limits,
            anew=anew,
        )

    def _writer(self, table: TableId) -> TableWriter:
        return TableWriter(self._path_of(table), self._limits.scratch / "key_index" / str(table))


def _tell(table: TableId, cut: int, step: Step, seconds: float) -> None:
    logger.info(
        "derived",
        table=str(table),
        cut=cut,
        added=step.added,
        removed=step.removed,
        mode=step.cost.mode,
        why=step.cost.why,
        engine=step.cost.engine,
        seconds=round(seconds, 3),
    )
