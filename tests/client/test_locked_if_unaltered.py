"""A table can be read as of a snapshot, unless a later change shows through the snapshot."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from cdc.client.moment import enter_snapshot, locked_if_unaltered
from cdc.config import Config, Lake, Source
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import Connection, connect
from tests.client.conftest import Pair

pytestmark = pytest.mark.integration

UNDISTURBED = (
    "SELECT 1",
    "INSERT INTO t VALUES (4, 'd')",
    "DELETE FROM t",
    "UPDATE t SET v = 'x'",
    "VACUUM t",
    "CREATE INDEX ON t (v)",
)
DISTURBED = (
    "TRUNCATE t",
    "BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 'a'); COMMIT",
    "ALTER TABLE t ALTER v TYPE varchar(9) USING left(v, 9)",
    "VACUUM FULL t",
    "ALTER TABLE t ADD w int",
    "ALTER TABLE t RENAME v TO w",
    "ALTER TABLE t RENAME TO u",
    "DROP TABLE t",
    "BEGIN; DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text); COMMIT",
)


@dataclass(frozen=True)
class Then:
    """A snapshot of one table with three rows."""

    pair: Pair
    reader: Connection
    now: Connection
    table: SourceTable

    def rows(self) -> int:
        row = self.reader.execute(f"SELECT count(*) FROM {self.pair.schema}.t".encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def then(pair: Pair) -> Iterator[Then]:
    pair.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pair.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    config = Config(source=Source(tables=["shop.t"]), lake=Lake(path=str(Path("unused"))))
    with connect(pair.url) as holder, connect(pair.url) as reader, connect(pair.url) as now:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        exported = holder.execute("SELECT pg_export_snapshot()").fetchone()
        assert exported is not None
        enter_snapshot(reader, exported[0])
        (table,) = captured_tables(reader, config)
        yield Then(pair, reader, now, table)


@pytest.mark.parametrize("statement", UNDISTURBED)
def test_a_table_can_be_read_as_of_the_snapshot_after_changes_of_rows(
    then: Then, statement: str
) -> None:
    then.pair.run(statement)

    with locked_if_unaltered(then.reader, then.now, then.table) as readable:
        assert readable
        assert then.rows() == 3


@pytest.mark.parametrize("statement", DISTURBED)
def test_a_table_cannot_be_read_after_it_was_rewritten_or_altered(
    then: Then, statement: str
) -> None:
    for one in statement.split("; "):
        then.pair.run(one)

    with locked_if_unaltered(then.reader, then.now, then.table) as readable:
        assert not readable


def test_a_table_is_locked_only_while_it_is_read(then: Then) -> None:
    then.pair.run("SET lock_timeout = '200ms'")

    with locked_if_unaltered(then.reader, then.now, then.table) as readable:
        assert readable
        with pytest.raises(psycopg.errors.LockNotAvailable):
            then.pair.run("TRUNCATE t")
        assert then.rows() == 3
    then.pair.run("TRUNCATE t")

    with locked_if_unaltered(then.reader, then.now, then.table) as readable:
        assert not readable
