"""Creates the tables of the source, and makes the changes of writers to them."""

from dataclasses import dataclass, field
from random import Random
from typing import Final

import psycopg
from psycopg import sql

SCHEMA: Final = "bench"
IDS_PER_WRITER: Final = 1_000_000_000
MARKERS_FROM: Final = 1_000_000_000_000
"""Ids from here on are markers: rows that say when a transaction was committed."""
_CREATE: Final = sql.SQL(
    "create table {} (id bigint primary key, revision integer not null, amount numeric(12, 2),"
    " name text not null, note text, at timestamptz not null)"
)
_FILL: Final = sql.SQL(
    "insert into {} select n, 0, n * 31 %% 100000, 'name ' || md5(n::text),"
    " 'note ' || n, timestamptz '2026-01-01' + n * interval '1 second'"
    " from generate_series(1, %s) n"
)
_CHANGE: Final = sql.SQL(
    "with u as (update {0} set revision = revision + 1, note = 'note ' || revision, at = now()"
    " where id = any(%s) returning 1), d as (delete from {0} where id = any(%s) returning 1),"
    " i as (insert into {0} select n, 0, n %% 1000, 'name ' || n, null, now()"
    " from generate_series(%s::bigint, %s::bigint) n returning 1)"
    " select (select count(*) from u) + (select count(*) from d) + (select count(*) from i)"
)
_LSN: Final = "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"


def names(tables: int) -> list[str]:
    """Return the names of so many tables."""
    return [f"t{number:03d}" for number in range(1, tables + 1)]


def identifier(table: str) -> sql.Identifier:
    """Return the table's name as SQL."""
    return sql.Identifier(SCHEMA, table)


def create(url: str, *, tables: int, rows: int) -> None:
    """Create the tables with so many rows each."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("create schema {}").format(sql.Identifier(SCHEMA)))
        for name in names(tables):
            conn.execute(_CREATE.format(identifier(name)))
            conn.execute(_FILL.format(identifier(name)), [rows])
        conn.execute("analyze")


def lsn(conn: psycopg.Connection) -> int:
    """Return an LSN at or after that of every commit so far."""
    row = conn.execute(_LSN).fetchone()
    assert row is not None  # noqa: S101 - a select without a table has a row
    return int(row[0])


@dataclass(kw_only=True)
class Writer:
    """Changes tables in turn: of ten changes eight updates, one delete and one insert.

    Writers with different numbers never touch the same row.
    """

    conn: psycopg.Connection
    tables: list[str]
    rows: int  # of each table at the start
    number: int
    writers: int
    seed: int
    _turn: int = 0
    _next: int = field(init=False)
    _old: int = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed * 1000 + self.number)  # noqa: S311 - no secret
        first = IDS_PER_WRITER * (self.number + 1)
        self._next = self._old = max(self._beyond(table, first) for table in self.tables)

    def _beyond(self, table: str, first: int) -> int:
        """Return the first id of this writer's that no writer before it has given to a row."""
        query = sql.SQL("select max(id) from {} where id >= %s and id < %s")
        bounds = [first, first + IDS_PER_WRITER]
        row = self.conn.execute(query.format(identifier(table)), bounds).fetchone()
        return first if row is None or row[0] is None else int(row[0]) + 1

    def change(self, changes: int) -> int:
        """Execute one statement of about so many changes; return how many it made."""
        inserts = max(1, changes // 10)
        deletes = inserts if self._next - self._old >= inserts * len(self.tables) * 2 else 0
        picked = [self._pick() for _ in range(max(1, changes - inserts - deletes))]
        table = self.tables[self._turn % len(self.tables)]
        gone = list(range(self._old, self._old + deletes))
        until = self._next + inserts - 1
        row = self.conn.execute(
            _CHANGE.format(identifier(table)), [list(set(picked)), gone, self._next, until]
        ).fetchone()
        self._turn, self._next, self._old = self._turn + 1, until + 1, self._old + deletes
        return int(row[0]) if row else 0

    def _pick(self) -> int:
        share = max(1, self.rows // self.writers)
        return self._random.randrange(share) * self.writers + self.number + 1
