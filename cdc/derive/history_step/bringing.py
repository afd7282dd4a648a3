"""Brings a history to a cut: takes the events and readings of its table up to there."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from deltalake import DeltaTable

from cdc.apply.local.not_local import NotLocalError
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import calculator
from cdc.derive.history.history import OWN, History
from cdc.derive.history_step.own_columns import OwnColumns, refuse_retyped
from cdc.derive.history_step.reach import Kept, Reach, first_place, same_place
from cdc.derive.history_step.store import LOADED, VERSIONS, VersionStore
from cdc.derive.history_step.taking import Taking
from cdc.derive.log.event import Place
from cdc.derive.log.lacking import LackingColumnsError
from cdc.derive.log.log_reader import LogReader
from cdc.derive.step.difference import Difference, difference
from cdc.derive.step.limits import Cost, Limits
from cdc.derive.step.mark import Mark, is_of_definition, log_facts, mark_facts
from cdc.derive.step.ready import Step
from cdc.derive.step.writer import TableWriter, UnwritableError
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.lake.records.readings import Reading
from cdc.lake.table.positions import open_table
from cdc.tables import TableMode


@dataclass(kw_only=True)
class HistoryStep:
    """Brings a history to a cut; ``schema`` is its table's there, ``writer`` is the history's own.

    ``upto`` is how far the table has the log at the cut of ``mark``; ``now`` returns the table
    there, as if it were read. ``numbers`` are those of the table's columns in the source, as far as
    they are known.
    """

    definition: Definition
    schema: TableSchema
    writer: TableWriter
    mark: Mark
    upto: Place
    log: LogReader
    kept: Callable[[], Kept]
    now: Callable[[], Reading]
    limits: Limits
    numbers: Mapping[str, int] = field(default_factory=dict)

    def bring(self, *, since: Reach | None = None, anew: bool = False) -> tuple[Step, Reach]:
        """Take what the table got, in one commit; there is none if no version changes.

        ``since`` is how far the history is known to be, perhaps further than its mark says. With
        ``anew`` all of it is made from the log and the readings. Returns how far it is then. Raises
        TABLE_STOPPED for a table that cannot have a history or has other columns now, and CONFLICT
        where a history that is made anew would be less than it was.
        """
        self._began, self._types = time.monotonic(), dict[str, str]()
        table = open_table(self.writer.path)
        facts = {} if table is None else log_facts(table)
        if table is not None and facts and is_of_definition(table, self.mark):
            self._keep_columns(table, facts)
        _refuse_unfit(self.schema, self._history)
        if table is not None and facts and not anew and is_of_definition(table, self.mark):
            return self._taken(table, since or Reach.of(facts), None)
        if facts:
            old, name = Reach.of(facts), self.definition.table
            return self._made(*same_place(name, old, self.upto, self.kept()))
        try:
            return self._made(*first_place(self.upto, self.kept()))
        except LackingColumnsError:
            return self._made(self.upto, self.now())

    def _keep_columns(self, table: DeltaTable, facts: Mapping[str, Any]) -> None:
        """Go on with the columns that the history has, whatever the table has besides."""
        self._types = mark_facts(table)["columns"]
        names = [name for name in self._types if name not in OWN]
        own = OwnColumns.recorded(names, facts)
        self.schema = own.within(self.schema, self.numbers, more=bool(self._history.track))
        self.log = replace(self.log, wanted=self.log.wanted & set(names))

    def _made(self, place: Place, begun: Reading | None) -> tuple[Step, Reach]:
        """Make the history from a place on, or from a reading there."""
        number = 0 if begun is None else begun.number
        nothing = Reach(begun=number, since=place, since_lsn=None, upto=place, lsn=None)
        return self._taken(None, nothing, begun)

    @property
    def _history(self) -> History:
        assert self.definition.history is not None  # noqa: S101 - this is a step of one
        return self.definition.history

    def _taken(
        self, table: DeltaTable | None, reach: Reach, begun: Reading | None
    ) -> tuple[Step, Reach]:
        """Take the readings and events; ``begun`` comes before all others."""
        with calculator(self.limits.memory_mb, self.limits.scratch) as database:
            store = VersionStore(database=database, schema=self.schema, stored=table)
            taking = Taking(store, self._history.track, reach)
            try:
                if begun is not None:
                    taking.begin(begun)
                for some in self.log.slice(self.schema, reach.upto, self.upto, store):
                    taking.take(some)
            except NotLocalError as error:
                what = f"the history of {self.schema.table} cannot be kept: {error}"
                raise CdcError(ErrorKind.TABLE_STOPPED, what) from None
            now = taking.reached(self.upto, self.mark.lsn)
            return self._committed(store, table, now), now

    def _committed(self, store: VersionStore, table: DeltaTable | None, reach: Reach) -> Step:
        query = f"SELECT {store.columns} FROM {VERSIONS}"  # noqa: S608 - our names
        outputs = store.database.outputs(query)
        mark = replace(self.mark, columns={output.name: output.type for output in outputs})
        types = self._types or mark.columns, mark.columns
        refuse_retyped(self.definition.table, self.schema, types, anew=table is None)
        found = difference(store.database, query, outputs, (), LOADED)
        seconds = round(time.monotonic() - self._began, 3)
        why = "it is built" if table is None else ""
        cost = Cost(mode="log", why=why, changed=found.added + found.removed, seconds=seconds)
        version = -1 if table is None else table.version()
        if table is None or len(found.changes):
            own = OwnColumns.of(self.schema, self.numbers)
            mark = replace(mark, log={**reach.facts(), **own.facts()}, cost=asdict(cost))
            version = self._written(table, found, mark)
        rows = self.writer.rows()
        return Step(version=version, rows=rows, added=found.added, removed=found.removed, cost=cost)

    def _written(self, table: DeltaTable | None, found: Difference, mark: Mark) -> int:
        try:
            return self.writer.write(table, found.changes, mark, self.limits.kept_hours)
        except UnwritableError as error:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"nothing can be committed to the history: {error}",
                remedy=f"make it anew: wal2lake derived rebuild {self.definition.table}",
            ) from None


def _refuse_unfit(schema: TableSchema, history: History) -> None:
    """Raise TABLE_STOPPED for a table that a history cannot be kept of."""
    if schema.mode is not TableMode.KEYED:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"{schema.table} has no key, by which versions of a row are told from other rows",
            remedy="give it a primary key in the source",
        )
    taken = sorted(OWN.keys() & set(schema.names))
    unknown = sorted(set(history.track) - set(schema.names))
    if taken or unknown:
        what = f"has a column {taken[0]} of its own" if taken else f"has no column {unknown[0]}"
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"{schema.table} {what}",
            remedy="rename it in the source" if taken else "correct track in the definition",
        )
