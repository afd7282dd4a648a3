"""Brings all derived tables to each cut before it is published, within a budget.

They are calculated one after the other, in a thread of their own, from the versions that the cut
has of their inputs. A cut waits for them no longer than the budget: then it is published with those
tables at the older cut where they are, and they catch up in one step. No cut waits while they take
longer than that, so captured tables are as fresh as without them.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Protocol

import structlog

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.inputs import Input
from cdc.derive.keep.histories import Histories
from cdc.derive.keep.inputs_at import Inputs, inputs_at
from cdc.derive.keep.late_tables import LateTables
from cdc.derive.late_rows.input_log import InputLog
from cdc.derive.log.topic_rows import Recent
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import Mark
from cdc.derive.step.resident import ResidentTables
from cdc.derive.step.step import Bringing, Opens, Step
from cdc.derive.step.writer import TableWriter
from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.observe.defects import traceback_of
from cdc.tables import TableId, TableState

_CURRENT: Final = frozenset({TableState.STREAMING.value, TableState.DEGRADED.value})
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Try:
    """The last inputs from which a table was calculated, and why that failed; empty if not."""

    inputs: Mapping[TableId, Input]
    failure: str = ""


class Requests(Protocol):
    """Knows of which tables somebody asked something."""

    def is_asked(self, table: TableId) -> bool: ...
    def done(self, table: TableId) -> None: ...


class DerivedTables:
    """The derived tables of a running job; only the thread of the rounds calls it."""

    def __init__(
        self,
        definitions: Iterable[Definition],
        path_of: Callable[[TableId], str],
        limits: Limits,
        *,
        last: Iterable[DerivedEntry],
        refused: Iterable[DerivedEntry] = (),
        digests: Mapping[str, str] | None = None,
        rebuilds: Requests,
        pauses: Requests,
        seconds: float,
        log: InputLog | None = None,
        histories: Histories | None = None,
    ) -> None:
        """Keep tables in the order of the definitions, in which each comes after its inputs.

        ``last`` are the entries of the newest cut, and ``refused`` those of definitions that are
        not valid. ``digests`` tell one set of definitions from another. ``rebuilds`` are the tables
        to calculate anew, ``pauses`` those to leave where they are. A cut waits for so many
        ``seconds``. ``histories`` brings those there, and ``log`` says which rows are late, where
        the log can be read.
        """
        self._definitions = list(definitions)
        self._path_of, self._limits, self._seconds = path_of, limits, seconds
        self._refused = tuple(refused)
        self.digests = digests or {}
        self._rebuilds, self._pauses, self._late = rebuilds, pauses, LateTables(log)
        names = {str(definition.table) for definition in self._definitions}
        self._entries = {entry.table: entry for entry in last if entry.table in names}
        self._tried: dict[TableId, _Try] = {}
        self._writers = {d.table: self._writer(d.table) for d in self._definitions}
        self._resident = ResidentTables(limits.memory_mb, limits.scratch)
        self._histories = histories
        self._recent: Recent | None = None  # for the thread of the work
        self._open: Opens = Input.open  # likewise
        self._work: Future[None] | None = None
        self._took = 0.0  # seconds, what was done last
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="derive")

    @property
    def reads_log(self) -> bool:
        """Whether any of them is made of events."""
        return any(d.history is not None or d.late_rows is not None for d in self._definitions)

    def close(self) -> None:
        """End the thread; a step that has begun is finished first."""
        self._pool.shutdown(cancel_futures=True)
        self._resident.close()

    def entries(self, row: LedgerRow, recent: Recent | None = None) -> tuple[DerivedEntry, ...]:
        """Bring the tables to the cut of ``row``, within the budget, and return all entries.

        ``recent`` are the rows of the log that are in memory.
        """
        if self._definitions:
            self._begin(row, recent)
        found = (self._entry(definition, row.cut) for definition in self._definitions)
        return (*found, *self._refused)

    def _begin(self, row: LedgerRow, recent: Recent | None) -> None:
        self._take_result()
        if self._work is not None:
            return  # an earlier cut has waited for it
        self._work = self._pool.submit(self._bring_all, row, recent)
        if self._took <= self._seconds:
            wait([self._work], self._seconds)
        self._take_result()

    def _take_result(self) -> None:
        """Forget a work that has ended; raise what ended it, such as a store without an answer."""
        if self._work is not None and self._work.done():
            work, self._work = self._work, None
            work.result()

    def _entry(self, definition: Definition, cut: int) -> DerivedEntry:
        entry = self._last(definition)
        if entry.at_cut == cut or entry.state not in _CURRENT:
            return entry
        return replace(entry, state=TableState.LAGGING.value, reason=f"it is at cut {entry.at_cut}")

    def _last(self, definition: Definition) -> DerivedEntry:
        return self._entries.get(str(definition.table)) or self._none_yet(definition)

    def _none_yet(self, definition: Definition) -> DerivedEntry:
        return DerivedEntry(
            table=str(definition.table),
            path=self._path_of(definition.table),
            version=-1,
            state=TableState.BUILDING.value,
        )

    def _bring_all(self, row: LedgerRow, recent: Recent | None) -> None:
        began = time.monotonic()
        self._recent, self._open = recent, cache(Input.open)  # each input once at a cut
        for definition in self._definitions:
            name = str(definition.table)
            self._entries[name] = self._brought(definition, row)
        self._took = time.monotonic() - began

    def _brought(self, definition: Definition, row: LedgerRow) -> DerivedEntry:
        before = self._last(definition)
        inputs = inputs_at(definition, row, self._entries)
        if self._pauses.is_asked(definition.table):
            inputs = replace(inputs, missing="it is paused")
        if inputs.missing:
            state = TableState.BUILDING if before.version < 0 else TableState.LAGGING
            return replace(before, state=state.value, reason=inputs.missing)
        tried = self._tried.get(definition.table)
        anew = self._rebuilds.is_asked(definition.table)
        if tried is None or tried.inputs != inputs.at or anew or definition.late_rows is not None:
            before, tried = self._calculated(definition, inputs, row, before, anew=anew)
        elif definition.history is not None and self._histories is not None:
            self._histories.passed(definition, row)
        if tried.failure:
            return replace(before, state=TableState.STOPPED.value, reason=tried.failure)
        state = TableState.DEGRADED if inputs.flagged else TableState.STREAMING
        return replace(before, state=state.value, reason=inputs.flagged, at_cut=row.cut)

    def _calculated(
        self,
        definition: Definition,
        inputs: Inputs,
        row: LedgerRow,
        before: DerivedEntry,
        *,
        anew: bool,
    ) -> tuple[DerivedEntry, _Try]:
        """Calculate the table; a failure of it is tried again when its inputs have changed."""
        name, failure = str(definition.table), ""
        tried = self._tried.pop(definition.table, None)
        since = tried.inputs if tried is not None and not tried.failure else None
        try:
            step = self._step(definition, inputs, row, since, anew=anew)
            before = self._after(step, definition)
        except CdcError as error:
            failure = error.message
            logger.warning("derived table stops", table=name, reason=failure)
        except Exception as error:  # noqa: BLE001 - no captured table may stop for it
            refuse_silence(error)
            logger.warning("derived table stops", table=name, trace=traceback_of(error))
            return before, _Try(inputs.at, type(error).__name__)
        if anew:
            self._rebuilds.done(definition.table)
        tried = self._tried[definition.table] = _Try(inputs.at, failure)
        return before, tried

    def _step(
        self,
        definition: Definition,
        inputs: Inputs,
        row: LedgerRow,
        since: Mapping[TableId, Input] | None,
        *,
        anew: bool,
    ) -> Step:
        began = time.monotonic()
        versions = {str(table): one.version for table, one in inputs.at.items()}
        mark = Mark(
            definition=definition.hash, cut=row.cut, epoch=row.epoch, lsn=row.lsn, inputs=versions
        )
        if definition.late_rows is not None:
            return self._late.bring(
                definition.late_rows,
                inputs.at,
                row,
                self._recent,
                path=self._path_of(definition.table),
                mark=mark,
                limits=self._limits,
                again=anew,
            )
        if definition.history is not None:
            step = self._history_step(definition, row, mark, anew=anew)
        else:
            step = Bringing(
                definition=definition,
                inputs=inputs.at,
                writer=self._writers[definition.table],
                mark=mark,
                limits=self._limits,
                resident=self._resident,
                open=self._open,
            ).bring(since=since, anew=anew)
        logger.info(
            "derived",
            table=str(definition.table),
            cut=row.cut,
            added=step.added,
            removed=step.removed,
            mode=step.cost.mode,
            why=step.cost.why,
            engine=step.cost.engine,
            seconds=round(time.monotonic() - began, 3),
        )
        return step

    def _writer(self, table: TableId) -> TableWriter:
        return TableWriter(self._path_of(table), self._limits.scratch / "key_index" / str(table))

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

    def _after(self, step: Step, definition: Definition) -> DerivedEntry:
        entry = self._none_yet(definition)
        return replace(entry, version=step.version, rows=step.rows, definition=definition.hash)
