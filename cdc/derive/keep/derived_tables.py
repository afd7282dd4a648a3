"""Brings all derived tables to each cut before it is published, within a budget.

They are calculated in one or two lanes (lanes.py), from the versions that the cut has of their
inputs; another thread commits a table while the next one of its lane is calculated. A cut waits
for them no longer than the budget: then it is published with those tables at the older cut where
they are, and they catch up in one step. No cut waits while they take longer than that: a single
thread calculates then, leaves the cores to others, and rests as long as it has worked, so that
captured tables are as fresh as without them.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Final, Protocol

import structlog

from cdc.derive.definition.at_time import at_time
from cdc.derive.definition.definition import Definition
from cdc.derive.keep.histories import Histories
from cdc.derive.keep.inputs_at import Inputs, Tried, inputs_at
from cdc.derive.keep.lanes import Lanes
from cdc.derive.keep.late_tables import Admits, LateTables
from cdc.derive.keep.table_steps import TableSteps
from cdc.derive.keep.yielding import yielding
from cdc.derive.late_rows.input_log import InputLog
from cdc.derive.log.topic_rows import Recent
from cdc.derive.step.limits import Limits
from cdc.derive.step.ready import Step, Steps
from cdc.errors import CdcError
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.observe.defects import traceback_of
from cdc.tables import TableId, TableState

_MOST_REST: Final = 1.0
"""Seconds; nothing that lags waits longer for its next step."""
_CURRENT: Final = frozenset({TableState.STREAMING.value, TableState.DEGRADED.value})
logger = structlog.get_logger(__name__)


class Requests(Protocol):
    """Knows of which tables somebody asked something."""

    def is_asked(self, table: TableId) -> bool: ...
    def done(self, table: TableId) -> None: ...


class DerivedTables:
    """Keeps the derived tables of a running job; only the thread of the rounds calls it."""

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
        admissions: Admits | None = None,
    ) -> None:
        """Keep tables in the order of the definitions, in which each comes after its inputs.

        ``last`` are the entries of the newest cut, and ``refused`` those of definitions that are
        not valid. ``digests`` tell one set of definitions from another. ``rebuilds`` are the tables
        to calculate anew, ``pauses`` those to leave where they are. A cut waits for so many
        ``seconds``. ``histories`` brings those there, and ``log`` says which rows are late, where
        the log can be read; ``admissions`` are those of late rows to count after all.
        """
        self._definitions = list(definitions)
        self._path_of, self._seconds = path_of, seconds
        self._refused = tuple(refused)
        self.digests = digests or {}
        self._rebuilds, self._pauses = rebuilds, pauses
        names = {str(definition.table) for definition in self._definitions}
        self._entries = {entry.table: entry for entry in last if entry.table in names}
        self._tried: dict[TableId, Tried] = {}
        late = LateTables(log, admissions)
        make = partial(TableSteps, path_of=path_of, limits=limits, late=late, histories=histories)
        self._lanes = Lanes(self._definitions, limits.lanes, make)
        self._work: Future[None] | None = None
        self._took = 0.0  # seconds, what was calculated last
        self._calculates = False  # something, at this cut
        self._closing = Event()
        self._pool = ThreadPoolExecutor(1, "derive")
        self._behind = ThreadPoolExecutor(1, "derive-behind", initializer=yielding)

    @property
    def reads_log(self) -> bool:
        """Return whether any of them is made of events."""
        return any(one.is_of_events for one in self._definitions)

    def close(self) -> None:
        """End the threads; a step that has begun is finished first."""
        self._closing.set()
        for pool in (self._pool, self._behind):
            pool.shutdown(cancel_futures=True)
        self._lanes.close()

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
        is_behind = self._took > self._seconds
        pool = self._behind if is_behind else self._pool
        self._work = pool.submit(self._bring_all, row, recent, in_turn=is_behind)
        if not is_behind:
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

    def _bring_all(self, row: LedgerRow, recent: Recent | None, *, in_turn: bool) -> None:
        began, self._calculates = time.monotonic(), False
        self._lanes.run(partial(self._bring, row), recent, in_turn=in_turn)
        if self._calculates:  # a cut without changes says nothing of the next
            self._took = time.monotonic() - began
            if in_turn:
                self._closing.wait(min(self._took, _MOST_REST))

    def _bring(self, row: LedgerRow, definition: Definition) -> Steps[None]:
        self._entries[str(definition.table)] = yield from self._brought(definition, row)

    def _brought(self, definition: Definition, row: LedgerRow) -> Steps[DerivedEntry]:
        before = self._last(definition)
        inputs = inputs_at(definition, row, self._entries)
        if self._pauses.is_asked(definition.table):
            inputs = replace(inputs, missing="it is paused")
        if inputs.missing:
            state = TableState.BUILDING if before.version < 0 else TableState.LAGGING
            return replace(before, state=state.value, reason=inputs.missing)
        tried = self._tried.get(definition.table)
        anew = self._rebuilds.is_asked(definition.table)
        again = anew or definition.late_rows is not None
        if tried is None or again or not tried.inputs.give_the_rows_of(inputs):
            found = self._calculated(definition, inputs, row, before, anew=anew)
            before, tried = yield from found
        else:
            self._lanes.of(definition.table).passed(definition, row)
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
    ) -> Steps[tuple[DerivedEntry, Tried]]:
        """Calculate the table; a failure of it is tried again when its inputs have changed."""
        self._calculates = True
        failure = ""
        tried = self._tried.pop(definition.table, None)
        since = tried.inputs.at if tried is not None and not tried.failure else None
        try:
            timed = at_time(definition, inputs.time)
            steps = self._lanes.of(definition.table)
            step = yield from steps.step(timed, inputs.at, row, since, before, anew=anew)
            before = self._after(step, definition)
        except CdcError as error:
            remedy = f"; remedy: {error.remedy}" if error.remedy else ""
            failure = f"{error.coded}{remedy}"
            _say_stopped(before, failure, reason=failure)
        except Exception as error:  # noqa: BLE001 - no captured table may stop for it
            refuse_silence(error)
            failure = type(error).__name__
            _say_stopped(before, failure, trace=traceback_of(error))
            return before, Tried(inputs, failure)
        if anew:
            self._rebuilds.done(definition.table)
        tried = self._tried[definition.table] = Tried(inputs, failure)
        return before, tried

    def _after(self, step: Step, definition: Definition) -> DerivedEntry:
        entry = self._none_yet(definition)
        return replace(
            entry,
            version=step.version,
            rows=step.rows,
            definition=definition.hash,
            delta_id=self._lanes.of(definition.table).delta_id(definition.table),
        )


def _say_stopped(last: DerivedEntry, failure: str, **facts: str) -> None:
    """Log why a table stops, unless it has been stopped for that since the last cut."""
    if last.reason != failure:
        logger.warning("derived table stops", table=last.table, **facts)
