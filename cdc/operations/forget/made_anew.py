"""Leaves nothing of deleted rows in the tables that are derived from theirs.

The job makes each of them anew, so that its newest version has nothing of before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cdc.derive.definition.declared import declared
from cdc.derive.definition.definition import Definition
from cdc.derive.step.upkeep import forget_older
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.upkeep.erasure import Beginning, begin_anew
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.forget.derived import derived_from
from cdc.operations.forget.left_over import left_over, reached
from cdc.operations.forget.waits import await_no_hold, await_said, newest_cut
from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableId, TableState

_AT_A_CUT: Final = frozenset(
    {TableState.STREAMING.value, TableState.DEGRADED.value, TableState.LAGGING.value}
)


def derived_tables(job: JobContext, table: TableId) -> list[Definition]:
    """Return the derived tables that have to be made anew.

    Raises as ``derived_from``, and CONFLICT where the lake has one that is derived no more.
    """
    row, config = newest_cut(job), job.config
    found = declared(config.derived.path, [TableId.parse(one.table) for one in row.tables])
    chosen = derived_from(table, row, found, pauses(config.state_dir).is_asked)
    names = frozenset(map(str, (table, *(one.table for one in chosen))))
    if left := reached(names, left_over(config.lake.path, row)):
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the lake still has {', '.join(left)}, which may keep values of {table}",
            detail="no cut has them: their definitions are gone, or they were built beside another",
            remedy="wal2lake derived drop",
        )
    return chosen


Begins = Mapping[str, Beginning]
"""The versions from which derived tables are kept, by name."""


@dataclass(frozen=True, slots=True)
class MadeAnew:
    """Derived tables that are made anew, and lose their older versions."""

    job: JobContext
    tables: Sequence[Definition]
    reporter: Reporter

    def make(self, cut: int) -> Begins:
        """Have the job make the tables anew at a cut from this one on; return from where they are.

        They are brought to it first: what the job has begun may still be of an older cut. The
        newest cut has the new versions in the end. Raises TABLE_STOPPED and TIMEOUT.
        """
        if self.tables:
            self.reporter.tell(phase="making derived tables anew")
        self._await(lambda entry: entry.at_cut >= cut)
        before = {entry.table: (entry.delta_id, entry.version) for entry in self._entries()}
        requests = rebuilds(self.job.config.state_dir)
        for one in self.tables:
            requests.ask(one.table)
        self._await(
            lambda entry: (
                not requests.is_asked(TableId.parse(entry.table))
                and before[entry.table] != (entry.delta_id, entry.version)
            )
        )
        begins = {entry.table: begin_anew(entry.path) for entry in self._entries()}
        self._await(lambda entry: entry.version >= begins[entry.table].version)
        return begins

    def delete_older(self, begins: Begins) -> None:
        """Delete the versions before these, once nobody reads one."""
        for entry in self._entries():
            since = begins[entry.table].time
            await_no_hold(self.job, self.reporter, since)
            forget_older(entry.path, since)

    def _await(self, is_there: Callable[[DerivedEntry], bool]) -> None:
        """Wait until all tables are so in a cut; raises TABLE_STOPPED and TIMEOUT."""

        def are_there() -> bool:
            entries = [_going(entry) for entry in self._entries()]
            return all(entry.state in _AT_A_CUT and is_there(entry) for entry in entries)

        names = ", ".join(str(one.table) for one in self.tables)
        await_said(self.job, self.reporter, are_there, f"{names} did not come to a new cut")

    def _entries(self) -> list[DerivedEntry]:
        row = newest_cut(self.job)
        return [_entry(row, one.table) for one in self.tables]


def _entry(row: LedgerRow, table: TableId) -> DerivedEntry:
    entry = row.derived_entry(str(table))
    if entry is None:
        raise CdcError(ErrorKind.CONFLICT, f"{table} is derived no more", remedy="run it again")
    return entry


def _going(entry: DerivedEntry) -> DerivedEntry:
    """Return the entry; raise TABLE_STOPPED where its table is stopped."""
    if entry.state == TableState.STOPPED.value:
        raise CdcError(ErrorKind.TABLE_STOPPED, f"{entry.table} is stopped", detail=entry.reason)
    return entry
