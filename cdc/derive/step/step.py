"""Brings one derived table to a cut: calculates its query, and commits only what differs.

Where the query has a scope, only the rows are calculated that changed rows of the inputs lead to.
Where it has none, or what has changed is not known or is much, the whole query is calculated, which
is what every step means.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Final

import structlog
from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import (
    columns,
    identity,
    match,
    needed_columns,
    row_count,
    rows,
)
from cdc.derive.engine.output_types import Output
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Scope, Whole
from cdc.derive.step.changes import Changes, changes_since
from cdc.derive.step.difference import difference, refuse_other_rows
from cdc.derive.step.judged import closing, query_at
from cdc.derive.step.limits import Cost, Limits
from cdc.derive.step.mark import Mark, Origin, origin
from cdc.derive.step.measured import Measured
from cdc.derive.step.ready import Calculated, Ready, Step, Steps, finish
from cdc.derive.step.resident import ResidentTables, TableAt, stored_rows
from cdc.derive.step.scoped import Kept, recalculate, stored_columns
from cdc.derive.step.whole_query import load_whole, refuse_large
from cdc.derive.step.writer import TableWriter, UnwritableError
from cdc.errors import CdcError
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId

_FEW_KEYS: Final = 100
"""So many values of a scope key are always few."""
Opens = Callable[[Input], DeltaTable]
logger = structlog.get_logger(__name__)


@dataclass(kw_only=True)
class Bringing:
    """Brings a derived table to a cut in one step.

    ``writer`` is that of the table, ``resident`` what steps share.
    """

    definition: Definition
    inputs: Mapping[TableId, Input]
    writer: TableWriter
    mark: Mark
    limits: Limits
    resident: ResidentTables
    open: Opens = Input.open
    newest: int | None = None  # version of the table, where it is known
    alone: Lock = field(default_factory=Lock)  # is held by a whole query
    measured: Measured = field(default_factory=Measured)  # what earlier steps of it have cost

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._opened = {table: self.open(one) for table, one in self.inputs.items()}
        self._needed = {t: needed_columns(one, self.definition) for t, one in self._opened.items()}
        self._ids = {table: identity(one) for table, one in self._opened.items()}
        self.mark = replace(self.mark, ids={str(table): one for table, one in self._ids.items()})

    def bring(self, *, since: Mapping[TableId, Input] | None = None, anew: bool = False) -> Step:
        """Make the table equal to the definition's query over the inputs.

        One commit has the difference and the mark; there is none if nothing differs. ``since`` are
        the inputs of which the table is known to have the rows, later ones perhaps than those of
        its mark. With ``anew`` it has all rows, and whatever was there is replaced. Raises
        TABLE_STOPPED where the query fails or is larger than the definition allows, and CONFIG
        where it does not fit its inputs. The table stays as it is then.
        """
        return finish(self.steps(since, anew=anew))

    def steps(
        self, since: Mapping[TableId, Input] | None = None, *, anew: bool = False
    ) -> Steps[Step]:
        """Do what ``bring`` does, but leave the commit to the caller, who sends its version."""
        try:
            return (yield from self._finished(self._ready(since, anew=anew)))
        except UnwritableError as error:
            ready = self._whole(None, f"it is made anew: {error}")
        return (yield from self._finished(ready))

    def _finished(self, ready: Ready | Step) -> Steps[Step]:
        if isinstance(ready, Step):
            return ready
        version = -1 if ready.stored is None else ready.stored.version()
        if ready.is_needed:
            mark, hours = replace(ready.mark, cost=asdict(ready.cost)), self.limits.kept_hours
            version = yield partial(
                self.writer.write, ready.stored, ready.found.changes, mark, hours
            )
        if ready.is_kept:
            self.resident.committed(self.definition.table, version, ready.found.changes)
        return ready.done(version)

    def _ready(self, since: Mapping[TableId, Input] | None, *, anew: bool) -> Ready | Step:
        scope = definition_scope(
            self.definition, {table: columns(one) for table, one in self._opened.items()}
        )
        if isinstance(scope, Whole):
            refuse_large(self.definition, self._opened.values(), self.limits, scope.reason)
        table = None if anew else self.writer.opened(self.newest)
        now = None if table is None else origin(table, self.mark.definition)
        if table is None or now is None:
            return self._whole(table, "it is built")
        if isinstance(scope, Whole):
            return self._of_copies(table, now, scope.reason) or self._whole(table, scope.reason)
        if now.ids != self._ids:
            return self._whole(table, "an input was made anew, or has another key")
        if self._prefers_whole():
            return self._whole(table, "it is the smaller work")
        before = {**self._at(now.inputs), **(since or {})}
        changes = self._changes(before)
        if not isinstance(changes, Changes):
            return self._whole(table, changes)
        ready = self._scoped(scope, table, now, changes, before)
        return ready or self._whole(table, "a step by its scope failed")

    def _at(self, versions: Mapping[TableId, int]) -> dict[TableId, Input]:
        return {t: replace(one, version=versions[t]) for t, one in self.inputs.items()}

    def _changes(self, since: Mapping[TableId, Input]) -> Changes | str:
        read = {t: one for t, one in self.inputs.items() if self.definition.reads(t)}
        known, share = self.resident.known, self.limits.share
        return changes_since(since, read, self._opened, self._needed, known=known, share=share)

    def _scoped(
        self,
        scope: Scope,
        table: DeltaTable,
        now: Origin,
        changes: Changes,
        before: Mapping[TableId, Input],
    ) -> Ready | Step | None:
        """Do the step by its scope; None if it fails, which the whole query decides then."""
        if not changes.count and self.definition.late is None:
            return self._unchanged(table)
        try:
            own = self._own(table, stored_columns(self.definition, scope))
            with self.resident.at(self._wanted(), own, changes) as database:
                kept = Kept(
                    outputs=[Output(name, kind) for name, kind in now.columns.items()],
                    stored=stored_rows(self.definition.table),
                    match=partial(match, database, self._opened, self.definition),
                    most_keys=max(_FEW_KEYS, int(self.limits.share * row_count(table))),
                    asked=partial(query_at, self.definition, self._opened),
                    closing=closing(self.definition, self._opened, before),
                )
                found = recalculate(database, self.definition, scope, changes, kept)
        except CdcError as error:
            logger.info("derived table is calculated as a whole", reason=error.message)
            return None
        if self.limits.cross_check and not self.mark.cut % self.limits.cross_check:
            refuse_other_rows(self.mark.cut, found.difference, self._calculated(table).found)
        cost = self._cost("scoped", changed=changes.count, keys=found.keys)
        if found.is_whole:
            why = "the changes lead to a large part of its rows"
            cost = replace(cost, mode="whole", why=why)
        self.measured.took_scoped(cost.seconds)
        mark = self._typed(now.columns)
        return Ready(mark=mark, stored=table, found=found.difference, cost=cost, is_kept=True)

    def _of_copies(self, table: DeltaTable, now: Origin, why: str) -> Ready | None:
        """Calculate the whole query over what other tables keep; None if that is not all of it."""
        wanted = list(self._wanted())
        if now.ids != self._ids or not self._is_plain() or not self.resident.keeps(wanted):
            return None
        try:
            with self.resident.at(wanted, self._own(table, (ROW_HASH, COPY))) as database:
                outputs = database.outputs(self.definition.duckdb)
                mark = self._typed({output.name: output.type for output in outputs})
                if not mark.is_of(table):
                    return None
                stored, key = stored_rows(self.definition.table), self.definition.key
                found = difference(database, self.definition.duckdb, outputs, key, stored)
        except CdcError:
            return None  # the whole query tells why
        cost = self._cost("whole", why=why)
        return Ready(mark=mark, stored=table, found=found, cost=cost, is_kept=True)

    def _prefers_whole(self) -> bool:
        if not (self.limits.measured and self.measured.may_prefer_whole and self._is_plain()):
            return False  # without counting the rows of all inputs
        return self.measured.prefers_whole(self._rows)

    def _is_plain(self) -> bool:
        """Return whether it is a query of the job's own engine and nothing else."""
        one, large = self.definition, self.limits.large
        if one.query is None or one.late is not None:
            return False
        return large is None or not large.takes(one, self._rows)

    @property
    def _rows(self) -> int:
        return sum(map(row_count, self._opened.values()))

    def _own(self, table: DeltaTable, columns: tuple[str, ...]) -> TableAt:
        at = Input(self.writer.path, table.version(), str(table.metadata().id))
        return TableAt(table=self.definition.table, at=at, opened=table, columns=columns)

    def _wanted(self) -> Iterator[TableAt]:
        for table, one in self.inputs.items():
            columns = tuple(self._needed[table])
            if self.definition.reads(table):
                yield TableAt(table=table, at=one, opened=self._opened[table], columns=columns)

    def _unchanged(self, table: DeltaTable) -> Step:
        rows, cost = self.writer.rows(), self._cost("scoped")
        return Step(version=table.version(), rows=rows, added=0, removed=0, cost=cost)

    def _whole(self, table: DeltaTable | None, why: str) -> Ready:
        done = self._calculated(table)
        why = f"{why}; {done.whole.refused}" if done.whole.refused else why
        cost = replace(self._cost("whole", why=why), engine=done.whole.engine)
        self.measured.took_whole(cost.seconds, self._rows)
        return Ready(mark=done.mark, stored=done.stored, found=done.found, cost=cost)

    def _calculated(self, table: DeltaTable | None) -> Calculated:
        """Calculate the whole query; compare it with the table if that has rows of it."""
        limits = self.limits
        with self.alone, calculator(limits.memory_mb, limits.scratch) as database:
            whole = load_whole(database, self.definition, self.inputs, self._opened, limits.large)
            outputs = database.outputs(whole.text)
            mark = self._typed({output.name: output.type for output in outputs})
            stored = table if table is not None and mark.is_of(table) else None
            known = None if stored is None else rows(stored, [ROW_HASH, COPY])
            found = difference(database, whole.text, outputs, self.definition.key, known)
            return Calculated(mark, stored, found, whole)

    def _typed(self, types: Mapping[str, str]) -> Mark:
        return replace(self.mark, columns=types)

    def _cost(self, mode: str, *, why: str = "", changed: int = 0, keys: int = 0) -> Cost:
        seconds = round(time.monotonic() - self._began, 3)
        return Cost(mode=mode, why=why, changed=changed, keys=keys, seconds=seconds)
