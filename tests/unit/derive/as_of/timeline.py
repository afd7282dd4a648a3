"""Two tables of a source and their past: the histories and the tables over them, and by hand.

The oracle knows the rows of a table after each of its transactions and readings, and no versions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from cdc.derive.definition.declared import declared
from cdc.derive.definition.definition import Definition
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.events.source import Row
from tests.unit.derive.history.kept import KeptHistory, history
from tests.unit.derive.log.logged import LoggedSource
from tests.unit.derive.small_lake import SmallLake, rows_of

if TYPE_CHECKING:
    from cdc.derive.keep.derived_tables import DerivedTables
    from cdc.lake.records.derived_entry import DerivedEntry

PAST = "/* ---\nkind: history\ntable: shop.{}\n--- */\n"
HISTORIES = {
    "marts.orders_past": PAST.format("orders"),
    "marts.customers_past": PAST.format("customers\ntrack: [id, n]"),
}
Moment = tuple[int, int]
"""An epoch and an LSN in it."""


@dataclass(frozen=True, slots=True)
class Known:
    """The rows of a table after a transaction, or a reading, which has no time."""

    at: Moment
    time: datetime | None
    rows: Mapping[int, Row]
    is_first: bool = False  # nothing of its epoch is known before


@dataclass(kw_only=True)
class Table:
    """A table, its history, and what is known of it by hand."""

    kept: KeptHistory
    known: list[Known] = field(default_factory=list)
    inserted: dict[int, Moment] = field(default_factory=dict)

    @property
    def source(self) -> LoggedSource:
        return self.kept.source

    def note(self, at: Moment, time: datetime | None, *, is_first: bool = False) -> None:
        rows = {key: dict(row) for key, row in self.source.rows.items()}
        before = self.known[-1].rows if self.known else {}
        self.inserted = {key: self.inserted[key] if key in before else at for key in rows}
        self.known.append(Known(at, time, rows, is_first))

    def commit(self) -> None:
        """End the transaction in this table, perhaps without an event of it."""
        source = self.source
        new = [one for one in source.happened if one.lsn == source.lsn]
        if new and source.events_of_it:
            self.note((self.kept.epoch, source.lsn), source.committed_at)
        source.commit()

    def read(self, *, is_first: bool = False) -> None:
        """Read the table whole."""
        self.kept.read(list(self.source.rows.values()))
        lsn = self.kept.readings[-1].lsn
        self.note((self.kept.epoch, lsn), None, is_first=is_first)

    def as_of(self, at: Moment) -> Mapping[int, Row]:
        """Return the rows after everything up to a transaction."""
        upto = [k for k in self.known if k.at <= at or (k.is_first and k.at[0] == at[0])]
        return upto[-1].rows if upto else {}

    def as_of_time(self, time: datetime | None) -> Mapping[int, Row]:
        """Return the rows after the longest beginning without a later commit."""
        rows: Mapping[int, Row] = {}
        for one in self.known:
            if time is None or (one.time is not None and one.time > time):
                break
            rows = one.rows
        return rows


class Timeline:
    """Orders and customers, whose transactions are common, and tables derived from their past."""

    def __init__(self, folder: Path, queries: Mapping[str, str]) -> None:
        self._folder = folder
        self.orders = Table(kept=self._kept("orders_past"))
        self.customers = Table(kept=self._kept("customers_past", "id", "n"))
        self.lake = SmallLake(folder, {})
        self.definitions = self._definitions(queries)
        self._derived: DerivedTables | None = None
        self._last: Sequence[DerivedEntry] = ()

    def _kept(self, name: str, *track: str) -> KeptHistory:
        return KeptHistory(self._folder / "lake" / "marts", history(*track), name=name)

    def _definitions(self, queries: Mapping[str, str]) -> Sequence[Definition]:
        folder = self._folder / "derived"
        folder.mkdir()
        for name, text in {**HISTORIES, **queries}.items():
            (folder / f"{name}.sql").write_text(text)
        found = declared(folder, [TableId("shop", "orders"), TableId("shop", "customers")])
        assert found.problems == []
        return [one for one in found.definitions if one.history is None]

    def tx(self, *acts: Callable[[LoggedSource, LoggedSource], None]) -> None:
        """Do these in one transaction, of orders and customers."""
        for act in acts:
            act(self.orders.source, self.customers.source)
        self.orders.commit()
        self.customers.commit()

    def snapshot(self, *acts: Callable[[LoggedSource, LoggedSource], None]) -> None:
        """Begin with these rows, as events of the connector's snapshot."""
        for act in acts:
            act(self.orders.source, self.customers.source)
        for table in (self.orders, self.customers):
            if table.source.rows:
                table.note((1, 77), None, is_first=True)
            table.source.commit()

    def new_epoch(self) -> None:
        """Begin an epoch, whose LSNs are smaller; the tables are read one after the other."""
        for number, table in enumerate((self.orders, self.customers)):
            table.kept.epoch += 1
            table.source.lsn = 300 + 10 * number
            table.read(is_first=True)
        self.orders.source.lsn = self.customers.source.lsn = 400

    def cut(self, *, anew: bool = False) -> dict[str, list[tuple[Any, ...]]]:
        """Bring everything to now, and return the rows of the tables by name."""
        for table in (self.orders, self.customers):
            table.kept.bring(anew=anew)
        if anew:
            for one in self.definitions:
                rebuilds(self._folder).ask(one.table)
        if self._derived is None:
            self._derived = self.lake.keep(*self.definitions, last=self._last)
        self._last = self._derived.entries(self._row())
        assert [(one.table, one.state, one.reason) for one in self._last] == [
            (str(one.table), "streaming", "") for one in self.definitions
        ]
        return {one.table: rows_of(one) for one in self._last}

    def restart(self) -> None:
        """Let the job forget what it has in memory."""
        self.close()
        self.orders.kept.at = self.customers.kept.at = None

    def close(self) -> None:
        if self._derived is not None:
            self._derived.close()
        self._derived = None

    def _row(self) -> LedgerRow:
        tables = [TableId("marts", name) for name in ("orders_past", "customers_past")]
        return replace(self.lake.row(), tables=tuple(map(self._input, tables)))

    def _input(self, table: TableId) -> TableEntry:
        path = self.lake.path(table)
        version = DeltaTable(path).version()
        return TableEntry(table=str(table), path=path, version=version, offset=0, state="streaming")
