"""Keeps what steps read in one database from cut to cut: the inputs, and the rows to compare with.

An input is brought from its version to the next by the rows that differ, and a derived table by the
difference that was committed, so that a step reads the whole of neither. What is kept here is a
copy: whenever a table cannot be brought on, or takes too much memory, it is read from the lake
again.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from cdc.errors import CdcError
from cdc.events.values.sql_text import postgres_name
from cdc.lake.changed.changed_rows import changed_rows
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId

_SHARE: Final = 0.2
"""Of a table's rows: when more have changed, reading it anew is not much more work."""
_FEWEST: Final = 10_000
"""So many changed rows are always few."""
_MEMORY: Final = 0.5
"""Of the memory of a step, which tables may take between steps."""
_SCHEMA: Final = "_cdc_stored"


@dataclass(slots=True)
class _Held:
    """A table in the database, and how many of its rows have changed since it was read."""

    identity: str
    at: Input
    columns: tuple[str, ...]
    moved: int = 0


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
    _held: dict[TableId, _Held] = field(default_factory=dict)
    _stored: dict[TableId, _Stored] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)
    _database: Calculator | None = None

    @contextmanager
    def at(
        self,
        inputs: Mapping[TableId, Input],
        opened: Mapping[TableId, DeltaTable],
        columns: Mapping[TableId, Sequence[str]],
        stored: "StoredTable",
    ) -> Iterator[Calculator]:
        """Give a database that has these columns of the inputs, and perhaps more, and ``stored``.

        Everything that is done in it is undone afterwards.
        """
        database = self._begun()
        try:
            for table, one in inputs.items():
                self._bring(database, table, one, opened[table], columns[table])
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
        self._database.keep("changes", changes)
        gone = f"SELECT {by} FROM changes WHERE {GONE}"  # noqa: S608 - our names
        self._database.run(f"DELETE FROM {name} WHERE ({by}) IN ({gone})")  # noqa: S608
        new = f"SELECT {listed} FROM changes WHERE NOT {GONE}"  # noqa: S608
        self._database.run(f"INSERT INTO {name} {new}")
        self._database.run("DROP TABLE changes")
        held.at = replace(held.at, version=version)

    def has(self, table: TableId) -> bool:
        """Return whether an input is kept."""
        return table in self._held

    def close(self) -> None:
        """Give up all tables and their memory."""
        self._held.clear()
        self._stored.clear()
        self._database = None
        with suppress(CdcError):
            self._open.close()

    def _begun(self) -> Calculator:
        if self._database is None:
            self._database = self._open.enter_context(calculator(self.memory_mb, self.scratch))
        return self._database

    def _bring(
        self,
        database: Calculator,
        table: TableId,
        one: Input,
        opened: DeltaTable,
        columns: Sequence[str],
    ) -> None:
        held = self._held.get(table)
        is_of_it = held is not None and (held.identity, held.at.path) == (
            identity(opened),
            one.path,
        )
        if held is not None and is_of_it and set(columns) <= set(held.columns):
            if held.at == one or _follow(database, table, held, one, row_count(opened)):
                held.at = one
                return
            columns = held.columns
        elif held is not None and is_of_it:
            columns = [*dict.fromkeys([*held.columns, *columns])]
        self._read(database, table, one, opened, columns)

    def _read(
        self,
        database: Calculator,
        table: TableId,
        one: Input,
        opened: DeltaTable,
        columns: Sequence[str],
    ) -> None:
        if self._held.pop(table, None) is not None:
            database.run(f"DROP TABLE {named(table)}")
        database.load(table, rows(opened, list(columns)))
        self._held[table] = _Held(identity(opened), one, tuple(columns))

    def _keep(self, database: Calculator, stored: "StoredTable") -> None:
        held = self._stored.get(stored.table)
        if held is not None and (held.at, held.columns) == (stored.at, stored.columns):
            return
        self._stored.pop(stored.table, None)
        database.run(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
        database.run(f"DROP TABLE IF EXISTS {stored_rows(stored.table)}")
        database.keep(stored_rows(stored.table), rows(stored.opened, list(stored.columns)))
        self._stored[stored.table] = _Stored(stored.at, stored.columns)

    def _keep_small(self, database: Calculator) -> None:
        ((used,),) = database.values("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
        if int(str(used)) > _MEMORY * self.memory_mb * 2**20:
            self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """A derived table whose stored rows are to be kept, and the columns that are needed of them."""

    table: TableId
    at: Input
    opened: DeltaTable
    columns: tuple[str, ...]


def stored_rows(table: TableId) -> str:
    """Return the name of the table that has a derived table's stored rows."""
    return f"{_SCHEMA}.{postgres_name(str(table))}"


def _follow(database: Calculator, table: TableId, held: _Held, one: Input, count: int) -> bool:
    """Bring a table to another version; return False, and leave it, if that is not worth it."""
    most = max(_FEWEST, int(_SHARE * count))
    found = changed_rows(one.path, held.at.version, one.version, held.columns, most)
    if found is None or held.moved + len(found.removed) + len(found.added) > max(count, most):
        return False
    database.run("BEGIN TRANSACTION")
    database.keep("raw_removed", found.removed)
    database.keep("raw_added", found.added)
    keep_net(database, "removed", "raw_removed", "raw_added")
    keep_net(database, "added", "raw_added", "raw_removed")
    is_exact = _delete(database, named(table), held.columns)
    if is_exact:
        database.run(f"INSERT INTO {named(table)} BY NAME SELECT * FROM added")  # noqa: S608
        for name in ("raw_removed", "raw_added", "removed", "added"):
            database.run(f"DROP TABLE {name}")
    database.run("COMMIT" if is_exact else "ROLLBACK")
    held.moved += len(found.removed) + len(found.added)
    return is_exact


def _delete(database: Calculator, table: str, columns: Sequence[str]) -> bool:
    """Delete the rows of ``removed`` from a table, each as often as it is there.

    Return whether all of them were found.
    """
    ((wanted,),) = database.values("SELECT count(*) FROM removed")
    if not wanted:
        return True
    outputs = database.outputs(f"SELECT * FROM {table}")  # noqa: S608 - our name
    equal = " AND ".join(
        f"t.{postgres_name(name)} IS NOT DISTINCT FROM r.{postgres_name(name)}" for name in columns
    )
    near = f"SELECT t.rowid AS place, t.* FROM {table} AS t SEMI JOIN removed AS r ON {equal}"  # noqa: S608
    copies = f"row_number() OVER (PARTITION BY {digest(outputs)}) AS copy"
    numbered = f"SELECT place, {digest(outputs)} AS row, {copies} FROM ({near})"  # noqa: S608
    counted = f"SELECT {digest(outputs)} AS row, count(*) AS copies FROM removed GROUP BY ALL"  # noqa: S608
    places = f"SELECT place FROM ({numbered}) JOIN ({counted}) USING (row) WHERE copy <= copies"  # noqa: S608
    found = database.values(f"DELETE FROM {table} WHERE rowid IN ({places})")  # noqa: S608
    return list(found) == [(wanted,)]
