"""Keeps what steps read in one database from cut to cut: the inputs, and the rows to compare with.

An input is brought from its version to the next by the rows that differ, and a derived table by the
difference that was committed, so that a step reads the whole of neither. What is kept here is a
copy: whenever a table cannot be brought on, or takes too much memory, it is read from the lake
again.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator, calculator, named
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import identity, row_count, rows
from cdc.derive.engine.net import keep_net
from cdc.derive.step.changes import STORED_SCHEMA, Changes, net_rows
from cdc.derive.step.difference import GONE
from cdc.derive.step.following import follow
from cdc.derive.step.known_changes import Known, KnownChanges
from cdc.errors import CdcError
from cdc.events.values.sql_text import postgres_name
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId

_SHARE: Final = 0.2
"""Of a table's rows: when more have changed, reading it anew is not much more work."""
_FEWEST: Final = 10_000
"""So many changed rows are always few."""
_MEMORY: Final = 0.5
"""Of the memory of a step, which tables may take between steps."""
_MANY: Final = 250_000
"""So many rows of a table are worth the work of several threads; with fewer these cost more than
they save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAt:
    """Names a table of the lake at one version, and the columns that are needed of it."""

    table: TableId
    at: Input
    opened: DeltaTable
    columns: tuple[str, ...]


@dataclass(slots=True)
class _Held:
    """Describes a table in the database, and counts its rows that changed since it was read."""

    identity: str
    at: Input
    columns: tuple[str, ...]
    moved: int = 0

    def is_of(self, wanted: TableAt) -> bool:
        """Return whether it is the same table, perhaps at another version."""
        return (self.identity, self.at.path) == (identity(wanted.opened), wanted.at.path)


@dataclass(slots=True)
class _Stored:
    """Describes a derived table's stored rows in the database: its digests, copies and keys."""

    at: Input
    columns: tuple[str, ...]


@dataclass(slots=True)
class ResidentTables:
    """Keeps tables in one database from cut to cut; used by one thread."""

    memory_mb: int
    scratch: Path
    known: KnownChanges = field(default_factory=KnownChanges)
    _held: dict[TableId, _Held] = field(default_factory=dict)
    _stored: dict[TableId, _Stored] = field(default_factory=dict)
    _net: dict[TableId, Known] = field(default_factory=dict)  # of which ``net_rows`` there are
    _open: ExitStack = field(default_factory=ExitStack)
    _database: Calculator | None = None
    is_short: bool = False
    """Whether the memory was too small once, and something had to be given up."""
    _is_large: bool = False  # a table has many rows
    _threads: int | None = None  # of the database; None for as many as there are cores

    @contextmanager
    def at(
        self, inputs: Iterable[TableAt], stored: TableAt, changes: Changes | None = None
    ) -> Iterator[Calculator]:
        """Give a database that has the inputs, perhaps with more columns, and ``stored_rows``.

        It has the ``net_rows`` of the changes, too. Everything that is done in it is undone
        afterwards.
        """
        database = self._begun()
        try:
            for one in inputs:
                self._bring(database, one)
            for table, known in changes.rows.items() if changes is not None else ():
                self._keep_net(database, table, known)
            self._keep(database, stored)
            database.run("BEGIN TRANSACTION")
            yield database
            database.run("ROLLBACK")
        except BaseException:
            self.close()  # what is in it is not known
            raise
        self._keep_small(database, stored.table)

    def committed(self, table: TableId, version: int, changes: pa.Table) -> None:
        """Bring the stored rows of a derived table to the version that has these changes."""
        held = self._stored.get(table)
        if held is None or self._database is None:
            return
        name, listed = stored_rows(table), ", ".join(map(postgres_name, held.columns))
        by = f"{ROW_HASH}, {COPY}"
        with self._database.given(changes.select([*held.columns, GONE])) as given:
            gone = f"SELECT {by} FROM {given} WHERE {GONE}"  # noqa: S608 - our names
            self._database.run(f"DELETE FROM {name} WHERE ({by}) IN ({gone})")  # noqa: S608
            new = f"SELECT {listed} FROM {given} WHERE NOT {GONE}"  # noqa: S608
            self._database.run(f"INSERT INTO {name} {new}")
        held.at = replace(held.at, version=version)

    def has(self, table: TableId) -> bool:
        """Return whether an input is kept."""
        return table in self._held

    def keeps(self, wanted: Iterable[TableAt]) -> bool:
        """Return whether all these inputs are kept, perhaps at other versions."""
        found = ((self._held.get(one.table), one) for one in wanted)
        return all(
            held is not None and held.is_of(one) and set(one.columns) <= set(held.columns)
            for held, one in found
        )

    def close(self) -> None:
        """Give up all tables and their memory."""
        self._held.clear()
        self.known.clear()
        self._stored.clear()
        self._net.clear()
        self._database = None
        with suppress(CdcError):
            self._open.close()

    def _begun(self) -> Calculator:
        if self._database is None:
            self._threads = None if self._is_large else 1
            self._database = self._open.enter_context(
                calculator(self.memory_mb, self.scratch, threads=self._threads)
            )
            self._database.run(f"CREATE SCHEMA {STORED_SCHEMA}")
        return self._database

    def _bring(self, database: Calculator, wanted: TableAt) -> None:
        held, columns = self._held.get(wanted.table), wanted.columns
        if held is not None and held.is_of(wanted):
            if set(columns) <= set(held.columns) and self._follow(database, held, wanted):
                held.at = wanted.at
                return
            columns = tuple(dict.fromkeys([*held.columns, *columns]))
        if self._held.pop(wanted.table, None) is not None:
            database.run(f"DROP TABLE {named(wanted.table)}")
        database.load(wanted.table, rows(wanted.opened, list(columns)))
        self._is_large |= database.count(named(wanted.table)) > _MANY
        self._held[wanted.table] = _Held(identity(wanted.opened), wanted.at, columns)

    def _follow(self, database: Calculator, held: _Held, wanted: TableAt) -> bool:
        """Bring a table to another version; return False, and leave it, if that is not worth it."""
        if held.at == wanted.at:
            return True
        count = row_count(wanted.opened)
        most = max(_FEWEST, int(_SHARE * count))
        found = self.known.rows(held.at, wanted.at.version, held.columns, most)
        if found is None or held.moved + len(found) > max(count, most):
            return False
        self._keep_net(database, wanted.table, found)
        held.moved += len(found)
        return follow(database, wanted.table, held.columns)

    def _keep_net(self, database: Calculator, table: TableId, known: Known) -> None:
        """Have the ``net_rows`` of changes, once for all steps that ask for them."""
        if self._net.get(table) is known:
            return
        self._net.pop(table, None)
        for name in net_rows(table):
            database.run(f"DROP TABLE IF EXISTS {name}")
        keep_net(database, known.rows, *net_rows(table))
        self._net[table] = known

    def _keep(self, database: Calculator, stored: TableAt) -> None:
        held = self._stored.get(stored.table)
        if held is not None and (held.at, held.columns) == (stored.at, stored.columns):
            return
        self._drop_stored(database, stored.table)
        database.keep(stored_rows(stored.table), rows(stored.opened, list(stored.columns)))
        self._stored[stored.table] = _Stored(stored.at, stored.columns)

    def _keep_small(self, database: Calculator, own: TableId) -> None:
        """Give up the stored rows of a table where memory is short, and everything if it still is.

        Everything, too, where an input has become too large for one thread.
        """
        is_short = self._has_too_much(database)
        if is_short:
            self.is_short = True
            self._drop_stored(database, own)
            is_short = self._has_too_much(database)
        if is_short or (self._is_large and self._threads == 1):
            self.close()

    def _has_too_much(self, database: Calculator) -> bool:
        ((used,),) = database.values("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
        return int(str(used)) > _MEMORY * self.memory_mb * 2**20

    def _drop_stored(self, database: Calculator, table: TableId) -> None:
        self._stored.pop(table, None)
        database.run(f"DROP TABLE IF EXISTS {stored_rows(table)}")


def stored_rows(table: TableId) -> str:
    """Return the name of the table that has a derived table's stored rows."""
    return f"{STORED_SCHEMA}.{postgres_name(f'stored {table}')}"
