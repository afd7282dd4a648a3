"""Test readers of one exported snapshot: all rows of that moment, whatever is written meanwhile."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from psycopg import IsolationLevel

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.structure import parse
from cdc.lake.commit.committer import Committer
from cdc.lake.files.store_of import store_of
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.operations.first_snapshot.copied_table import CopiedRange, CopiedTable
from cdc.operations.first_snapshot.page_range import PageRange, extent, page_ranges
from cdc.operations.first_snapshot.reader import Readers, Sessions, reading
from cdc.operations.resnapshot.target import Target
from cdc.source.notes.triggers import structure_of
from cdc.source.server.connection import Connection, connect
from cdc.tables import TableId, TableMode
from tests.meanwhile import meanwhile
from tests.unit.lake.commit.small_table import at, make
from tests.waiting import until

pytestmark = pytest.mark.integration

ROWS: Final = 60_000
COLUMNS: Final = {
    "id": "integer", "n": "integer", "t": "string", "day": "date", "_cdc_offset": "long"
}  # fmt: skip
VALUES: Final = "SELECT id, n, t, day FROM {} WHERE day < '9999-12-31' OR day IS NULL ORDER BY id"
BAG_COLUMNS: Final = {
    "n": "integer", "t": "string", "day": "date",
    OFFSET: "long", ROW_HASH: "string", COPY: "long",
}  # fmt: skip
BAG: Final = """
CREATE TABLE {0} (n int, t text, day date);
INSERT INTO {0} SELECT i % 7000, repeat('x', 90),
  CASE WHEN i % 997 = 5 THEN 'infinity' WHEN i % 3 = 0 THEN date '2020-01-01' END
  FROM generate_series(1, 60000) i;
"""
COPIES: Final = """
SELECT copies, count(*) FROM (
  SELECT count(*) AS copies FROM {} WHERE day < '9999-12-31' OR day IS NULL GROUP BY n, t, day) c
GROUP BY copies
"""
READERS: Final = 3
SQL: Final = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.t (id int PRIMARY KEY, n int, t text, day date);
INSERT INTO {schema}.t
  SELECT i, i, 't' || i, date '2020-01-01' + i % 999 FROM generate_series(1, {rows}) i;
DELETE FROM {schema}.t WHERE id % 10 = 0;
ANALYZE {schema}.t;
"""


@dataclass(kw_only=True)
class Room:
    """Holds a table of the source at one moment, and the lake's table for it."""

    url: str
    table: TableId
    held: Connection  # its transaction has the snapshot
    snapshot: str
    folder: Path
    copied: CopiedTable

    def now(self) -> list[tuple[Any, ...]]:
        """Return the rows that the snapshot shows."""
        return self.held.execute(VALUES.format(self.table).encode()).fetchall()

    def sessions(self) -> Sessions:
        """Return how readers of the table begin."""
        return Sessions(url=self.url, snapshot=self.snapshot, tables=[self.table], silence=60)

    def read(
        self, on_rows: Callable[[int], None] = lambda _: None, pages: int = 50
    ) -> list[CopiedRange]:
        """Read the table in ranges of so many pages."""
        with reading(self.sessions(), READERS, on_rows) as readers:
            return self.all_of(readers, pages)

    def all_of(self, readers: Readers, pages: int) -> list[CopiedRange]:
        """Give the readers all ranges, and return what they bring."""
        size = extent(self.held, self._oid()).pages
        ends = [*range(pages, size, pages), None]
        ranges = [PageRange(first, end) for first, end in zip([0, *ends[:-1]], ends, strict=True)]
        futures = [readers.submit(self.copied, each) for each in ranges]
        return [future.result() for future in futures]

    def _oid(self) -> int:
        row = self.held.execute("SELECT %s::regclass::oid", (str(self.table),)).fetchone()
        assert row is not None
        return int(row[0])

    def lake(self, parts: list[CopiedRange]) -> list[tuple[Any, ...]]:
        """Commit the files and return the rows that delta-rs sees."""
        self.take(parts)
        return in_lake(self.folder, VALUES.format("t"))

    def take(self, parts: list[CopiedRange]) -> None:
        """Commit the files."""
        committer = Committer(str(self.folder))
        committer.open()
        committer.append([file for part in parts for file in part.files], at(7))


def in_lake(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query over the table ``t``, by delta-rs."""
    found = QueryBuilder().register("t", DeltaTable(str(folder))).execute(query)
    return [tuple(row.values()) for row in pa.table(found.read_all()).to_pylist()]


@pytest.fixture
def room(source_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Room]:
    schema = request.node.name.partition("[")[0][:40]
    table = TableId(schema, "t")
    with connect(source_url) as connection:
        connection.execute(SQL.format(schema=schema, rows=ROWS).encode())
        with moment_of(source_url, table, tmp_path / "lake") as found:
            yield found


@contextmanager
def moment_of(
    url: str,
    table: TableId,
    folder: Path,
    columns: Mapping[str, str] = COLUMNS,
    mode: TableMode = TableMode.KEYED,
) -> Iterator[Room]:
    """Yield the table as it is now."""
    with connect(url) as held:
        held.autocommit = False
        held.isolation_level = IsolationLevel.REPEATABLE_READ
        row = held.execute(
            "SELECT pg_export_snapshot(), %s::regclass::oid", (str(table),)
        ).fetchone()
        assert row is not None
        structure = parse(structure_of(held, row[1]) or "")
        followed = tuple(column.column for column in structure.followed)
        key = ("id",) if mode is TableMode.KEYED else ()
        schema = TableSchema(table=table, columns=followed, key=key, mode=mode)
        copied = CopiedTable(
            table=table,
            target=Target(structure=structure, schema=schema, same=True),
            files=store_of(str(folder)),
            metadata=make(folder, columns).open().metadata,
            offset=7,
        )
        yield Room(url=url, table=table, held=held, snapshot=row[0], folder=folder, copied=copied)


def test_readers_bring_the_rows_of_the_moment_under_writes(room: Room, source_url: str) -> None:
    numbers = iter(range(1, 10**6))
    with connect(source_url) as writer:

        def write() -> None:
            number, table = next(numbers), room.table
            for statement in (
                f"UPDATE {table} SET n = -n, t = repeat('x', 200) WHERE id % 97 = {number % 97}",
                f"DELETE FROM {table} WHERE id = {number}",
                f"INSERT INTO {table} SELECT {ROWS} + {number} * 50 + generate_series(1, 50)",
                f"VACUUM {table}",
            ):
                writer.execute(statement.encode())

        write()  # the pages have new rows before the first range is read
        with meanwhile(write):
            parts = room.read()

    assert len(parts) > READERS
    assert sum(part.rows for part in parts) == len(room.now())
    assert room.lake(parts) == room.now()


def test_rows_are_told_of_as_they_are_read(room: Room) -> None:
    told: list[int] = []

    room.read(told.append)

    assert sum(told) == len(room.now())


def test_a_row_that_the_lake_cannot_hold_is_brought_apart(source_url: str, room: Room) -> None:
    with connect(source_url) as connection:
        connection.execute(f"UPDATE {room.table} SET day = 'infinity' WHERE id IN (7, 8)".encode())
    with moment_of(source_url, room.table, room.folder.with_name("later")) as later:
        parts = later.read()
        refused = [row for part in parts for row in part.refused]

        assert sorted(row.key for row in refused) == ['{"id": "7"}', '{"id": "8"}']
        assert {row.reason[:21] for row in refused} == {"column day holds a va"}
        assert later.lake(parts) == later.now()  # without the two
        assert sum(part.rows for part in parts) == len(later.now()) + 2


def test_a_range_whose_session_is_lost_is_read_again_in_the_same_snapshot(
    room: Room, source_url: str
) -> None:
    lost = threading.Event()
    end = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE query LIKE 'COPY%%' AND query LIKE %s"""

    def lose(_: int) -> None:
        if not lost.is_set():
            lost.set()
            with connect(source_url) as connection:
                connection.execute(end.encode(), (f"%{room.table.schema}%",))

    parts = room.read(lose)

    assert lost.is_set()
    assert room.lake(parts) == room.now()


def test_a_waiting_alter_table_does_not_keep_a_reader_out(room: Room, source_url: str) -> None:
    room.now()  # the moment has its lock before anybody else waits for one
    waiting = """SELECT count(*) FROM pg_locks
                  WHERE relation = %s::regclass AND NOT granted"""
    with (
        connect(source_url) as other,
        connect(source_url) as looking,
        ThreadPoolExecutor(1) as pool,
        reading(room.sessions(), READERS, lambda _: None) as readers,
    ):
        other.execute("SET lock_timeout = 0")
        altered = pool.submit(other.execute, f"ALTER TABLE {room.table} ADD x int".encode())

        def waits() -> bool:
            return looking.execute(waiting, (str(room.table),)).fetchone() == (1,)

        until(waits)
        parts = room.all_of(readers, 50)
        modes = looking.execute(
            "SELECT DISTINCT mode FROM pg_locks WHERE relation = %s::regclass AND granted",
            (str(room.table),),
        ).fetchall()
        readers.close()
        room_rows = room.lake(parts), room.now()
        room.held.rollback()
        altered.result()

    assert modes == [("AccessShareLock",)]
    assert room_rows[0] == room_rows[1]


def test_readers_that_cannot_lock_their_tables_say_so(room: Room, source_url: str) -> None:
    with connect(source_url) as other, other.transaction():
        other.execute(f"LOCK TABLE {room.table} IN ACCESS EXCLUSIVE MODE".encode())

        with pytest.raises(CdcError) as refused:
            room.read()

    assert refused.value.kind is ErrorKind.TIMEOUT


def test_an_error_of_one_range_ends_the_others(room: Room) -> None:
    def fail(_: int) -> None:
        raise CdcError(ErrorKind.CANCELLED, "enough")

    with pytest.raises(CdcError, match="enough"):
        room.read(fail)

    assert not list(room.folder.glob("*.parquet"))


def test_copies_of_equal_rows_are_numbered_without_gaps(source_url: str, room: Room) -> None:
    """Equal rows lie far apart, in several blocks, and some rows cannot be held."""
    table, folder = TableId(room.table.schema, "bag"), room.folder.with_name("bag")
    with connect(source_url) as connection:
        connection.execute(BAG.format(table).encode())
    with moment_of(source_url, table, folder, BAG_COLUMNS, TableMode.MULTISET) as bag:
        parts = bag.read(pages=10**6)
        counted = dict(bag.held.execute(COPIES.format(table).encode()).fetchall())

    bag.take(parts)
    numbers = defaultdict[str, list[int]](list)
    for digest, number in in_lake(folder, f"SELECT {ROW_HASH}, {COPY} FROM t"):
        numbers[digest].append(number)

    assert parts[0].refused
    assert Counter(map(len, numbers.values())) == counted
    assert all(sorted(found) == [*range(1, len(found) + 1)] for found in numbers.values())


def test_a_table_is_divided_by_its_pages(room: Room) -> None:
    size = extent(room.held, room._oid())

    assert size.pages > 100
    assert size.rows == ROWS - ROWS // 10
    assert page_ranges(size.pages) == [PageRange()]
