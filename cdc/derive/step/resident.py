"""Keeps what steps read in one database from cut to cut: the inputs, and the rows to compare with.

An input is brought from its version to the next by the rows that differ, and a derived table by the
difference that was committed, so that a step reads the whole of neither. What is kept here is a
copy: whenever a table cannot be brought on, or takes too much memory, it is read from the lake
again.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator, calculator, named
from cdc.derive.engine.digest import digest
from cdc.derive.engine.inputs import Input, identity, row_count, rows
from cdc.derive.engine.net import keep_net
from cdc.derive.step.difference import GONE
from cdc.derive.step.known_changes import KnownChanges
from cdc.errors import CdcError
from cdc.events.values.sql_text import postgres_name
from cdc.lake.changed.changed_rows import ChangedRows
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId

_SHARE: Final = 0.2
"""Of a table's rows: when more have changed, reading it anew is not much more work."""
_FEWEST: Final = 10_000
"""So many changed rows are always few."""
_MEMORY: Final = 0.5
"""Of the memory of a step, which tables may take between steps."""
_SCHEMA: Final = "_cdc_stored"
_REMOVED, _ADDED = f"{_SCHEMA}.removed", f"{_SCHEMA}.added"
_CHANGES: Final = f"{_SCHEMA}.changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAt:
    """A table of the lake at one version, and the columns that are needed of it."""

    table: TableId
    at: Input
    opened: DeltaTable
    columns: tuple[str, ...]


@dataclass(slots=True)
class _Held:
    """A table in the database, and how many of its rows have changed since it was read."""

    identity: str
    at: Input
    columns: tuple[str, ...]
    moved: int = 0

    def is_of(self, wanted: TableAt) -> bool:
        """Return whether it is the same table, perhaps at another version."""
        return (self.identity, self.at.path) == (identity(wanted.opened), wanted.at.path)


@dataclass(slots=True)
class _Stored:
    """The stored rows of a derived table in the database: its digests, copies and keys."""

    at: Input
    columns: tuple[str, ...]


@dataclass(slots=True)
class ResidentTables:
    """The tables that are kept; used by one thread."""

    memory_mb: int
    scratch: Path
    known: KnownChanges = field(default_factory=KnownChanges)
    _held: dict[TableId, _Held] = field(default_factory=dict)
    _stored: dict[TableId, _Stored] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)
    _database: Calculator | None = None

    @contextmanager
    def at(self, inputs: Iterable[TableAt], stored: TableAt) -> Iterator[Calculator]:
        """Give a database that has the inputs, perhaps with more columns, and ``stored_rows``.

        Everything that is done in it is undone afterwards.
        """
        database = self._begun()
        try:
            for one in inputs:
                self._bring(database, one)
            self._keep(database, stored)
            database.run("BEGIN TRANSACTION")
            yield database
            database.run("ROLLBACK")
        except BaseException:
            self.close()  # what is in it is not known
            raise
        self._keep_small(database)

    def committed(self, table: TableId, version: int, changes: pa.Table) -> None:
        """Bring the stored rows of a derived table to the version that has these changes."""
        held = self._stored.get(table)
        if held is None or self._database is None:
            return
        name, listed = stored_rows(table), ", ".join(map(postgres_name, held.columns))
        by = f"{ROW_HASH}, {COPY}"
        self._database.keep(_CHANGES, changes)
        gone = f"SELECT {by} FROM {_CHANGES} WHERE {GONE}"  # noqa: S608 - our names
        self._database.run(f"DELETE FROM {name} WHERE ({by}) IN ({gone})")  # noqa: S608
        new = f"SELECT {listed} FROM {_CHANGES} WHERE NOT {GONE}"  # noqa: S608
        self._database.run(f"INSERT INTO {name} {new}")
        self._database.run(f"DROP TABLE {_CHANGES}")
        held.at = replace(held.at, version=version)

    def has(self, table: TableId) -> bool:
        """Return whether an input is kept."""
        return table in self._held

    def close(self) -> None:
        """Give up all tables and their memory."""
        self._held.clear()
        self.known.clear()
        self._stored.clear()
        self._database = None
        with suppress(CdcError):
            self._open.close()

    def _begun(self) -> Calculator:
        if self._database is None:
            self._database = self._open.enter_context(calculator(self.memory_mb, self.scratch))
            self._database.run(f"CREATE SCHEMA {_SCHEMA}")
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
        self._held[wanted.table] = _Held(identity(wanted.opened), wanted.at, columns)

    def _follow(self, database: Calculator, held: _Held, wanted: TableAt) -> bool:
        """Bring a table to another version; return False, and leave it, if that is not worth it."""
        if held.at == wanted.at:
            return True
        count = row_count(wanted.opened)
        most = max(_FEWEST, int(_SHARE * count))
        found = self.known.rows(held.at, wanted.at.version, held.columns, most)
        if found is None or held.moved + _size(found) > max(count, most):
            return False
        database.run("BEGIN TRANSACTION")
        is_exact = _applied(database, named(wanted.table), held.columns, found)
        database.run("COMMIT" if is_exact else "ROLLBACK")
        held.moved += _size(found)
        return is_exact

    def _keep(self, database: Calculator, stored: TableAt) -> None:
        held = self._stored.get(stored.table)
        if held is not None and (held.at, held.columns) == (stored.at, stored.columns):
            return
        self._stored.pop(stored.table, None)
        database.run(f"DROP TABLE IF EXISTS {stored_rows(stored.table)}")
        database.keep(stored_rows(stored.table), rows(stored.opened, list(stored.columns)))
        self._stored[stored.table] = _Stored(stored.at, stored.columns)

    def _keep_small(self, database: Calculator) -> None:
        ((used,),) = database.values("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
        if int(str(used)) > _MEMORY * self.memory_mb * 2**20:
            self.close()


def stored_rows(table: TableId) -> str:
    """Return the name of the table that has a derived table's stored rows."""
    return f"{_SCHEMA}.{postgres_name(f'stored {table}')}"


def _size(found: ChangedRows) -> int:
    return len(found.removed) + len(found.added)


def _applied(database: Calculator, table: str, columns: Sequence[str], found: ChangedRows) -> bool:
    """Take the changed rows out of a table and into it; return whether all were there."""
    keep_net(database, found, _REMOVED, _ADDED)
    if not _delete(database, table, columns):
        return False
    database.run(f"INSERT INTO {table} BY NAME SELECT * FROM {_ADDED}")  # noqa: S608 - our names
    for name in (_REMOVED, _ADDED):
        database.run(f"DROP TABLE {name}")
    return True


def _delete(database: Calculator, table: str, columns: Sequence[str]) -> bool:
    """Delete the rows of the removed table from another, each as often as it is there.

    Return whether all of them were found.
    """
    wanted = database.count(_REMOVED)
    if not wanted:
        return True
    outputs = database.outputs(f"SELECT * FROM {table}")  # noqa: S608 - our name
    equal = " AND ".join(
        f"t.{postgres_name(name)} IS NOT DISTINCT FROM r.{postgres_name(name)}" for name in columns
    )
    near = f"SELECT t.rowid AS place, t.* FROM {table} AS t SEMI JOIN {_REMOVED} AS r ON {equal}"  # noqa: S608
    copies = f"row_number() OVER (PARTITION BY {digest(outputs)}) AS copy"
    numbered = f"SELECT place, {digest(outputs)} AS row, {copies} FROM ({near})"  # noqa: S608
    counted = f"SELECT {digest(outputs)} AS row, count(*) AS copies FROM {_REMOVED} GROUP BY ALL"  # noqa: S608
    places = f"SELECT place FROM ({numbered}) JOIN ({counted}) USING (row) WHERE copy <= copies"  # noqa: S608
    found = database.values(f"DELETE FROM {table} WHERE rowid IN ({places})")  # noqa: S608
    return list(found) == [(wanted,)]
