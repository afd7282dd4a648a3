"""Test the first snapshot by COPY: under load, of every kind of table, and killed at its steps."""

import random
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from cdc.failpoints import Failpoint
from tests.faults.bank.armed import Armed, job_of
from tests.meanwhile import meanwhile
from tests.servers.fixtures import started
from tests.waiting import until

pytestmark = pytest.mark.e2e

ROWS: Final = 60_000
SQL: Final = f"""
CREATE SCHEMA copied;
CREATE TABLE copied.keyed (
  id bigint PRIMARY KEY, n int, t text, amount numeric(12,2), day date, at timestamptz, raw bytea,
  tags text[]);
CREATE TABLE copied.moving (k uuid PRIMARY KEY DEFAULT gen_random_uuid(), v int, body text);
CREATE TABLE copied.appended (what text, n int);
CREATE TABLE copied.twice (a int, b text);
ALTER TABLE copied.twice REPLICA IDENTITY FULL;
CREATE TABLE copied.empty (id int PRIMARY KEY, v text);
INSERT INTO copied.keyed
  SELECT i, i, CASE WHEN i % 7 > 0 THEN 't' || i END, i / 8.0, date '2000-01-01' + i % 9000,
         timestamptz '2020-01-01 00:00Z' + i * interval '1.000001 s', decode(md5(i::text), 'hex'),
         ARRAY['a', NULL, i::text]
  FROM generate_series(1, {ROWS}) i;
INSERT INTO copied.moving (v, body)
  SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 2000) i;
INSERT INTO copied.appended SELECT 'w' || i, i FROM generate_series(1, 5000) i;
INSERT INTO copied.twice SELECT i % 10, 'b' || i % 3 FROM generate_series(1, 5000) i;
"""
TABLES: Final = ("keyed", "moving", "appended", "twice", "empty")
SAMPLE: Final = (Failpoint.AFTER_COPY_WRITE, Failpoint.AFTER_READING_RECORD)
OTHERS: Final = (
    (Failpoint.BEFORE_COPY_WRITE, Failpoint.BEFORE_COPY_KEEP, Failpoint.AFTER_COPY_KEEP),
    (Failpoint.BEFORE_ENTRY_PUT, Failpoint.AFTER_ENTRY_PUT),
)
"""Each kill costs a start."""


class Writer:
    """Transactions over all tables, which the snapshot may not tear."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._random = random.Random(7)
        self._numbers = count(ROWS + 1)
        self.done = 0

    def commit(self) -> None:
        """Commit one transaction."""
        new, old = next(self._numbers), self._random.randrange(1, ROWS)
        with self._connection.transaction():
            for statement in (
                f"INSERT INTO copied.keyed (id, n) VALUES ({new}, 0)",
                f"UPDATE copied.keyed SET n = -n WHERE id = {old}",
                f"DELETE FROM copied.keyed WHERE id = {old + 1}",
                f"UPDATE copied.keyed SET id = -id WHERE id = {old + 2}",
                f"UPDATE copied.moving SET v = {new} WHERE v = {old % 2000}",
                f"INSERT INTO copied.appended VALUES ('new', {new})",
                "INSERT INTO copied.twice VALUES (1, 'b1')",
                "DELETE FROM copied.twice WHERE ctid = (SELECT min(ctid) FROM copied.twice)",
                f"INSERT INTO copied.empty VALUES ({new}, 'v')",
            ):
                self._connection.execute(statement.encode())
        self.done += 1


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    """Yield an installation that has not been started, with a first snapshot by COPY."""
    with started(request, tmp_path / "servers", ("postgres",)) as servers:
        found = Armed.of(
            tmp_path / "lakehouse",
            servers["postgres"],
            ["copied.*"],
            job=job_of(request.config),
        )
        found.configure(
            lambda written: written["source"].update(
                snapshot="copy", append_only=["copied.appended"], snapshot_readers=3
            )
        )
        found.execute(SQL)
        try:
            yield found
        finally:
            found.run("down")
            assert found.processes() == []


def assert_equal(found: Armed, replayed: Path) -> None:
    """Compare with Postgres; every table has a whole reading, as the log lacks its first rows.

    One table is replayed into a folder.
    """
    found.sync()
    verified = found.facts("verify")
    assert verified["equal"], verified
    assert {t["table"] for t in verified["tables"]} == {f"copied.{name}" for name in TABLES}
    operations = found.lake_query("_wal2lake", "operations", "SELECT command, state FROM t")
    assert operations == {("snapshot", "done"): 1}
    kept = 'SELECT DISTINCT "table" FROM t WHERE whole'
    kept_of = found.lake_query("_wal2lake", "readings", kept)
    assert {name for (name,) in kept_of} == {f"copied.{name}" for name in TABLES}
    found.run("replay", "copied.keyed", "--into", str(replayed))


@pytest.mark.deep  # at each change a snapshot that is killed shows the same
def test_the_lake_equals_the_source_after_a_snapshot_under_load(
    copied: Armed, tmp_path: Path
) -> None:
    with copied.connect() as connection:
        writer = Writer(connection)
        with meanwhile(writer.commit):
            copied.run("up", "--detach")
            copied.sync()
    assert writer.done > 10

    assert_equal(copied, tmp_path / "replayed")


@pytest.mark.parametrize(
    "points",
    [SAMPLE, *(pytest.param(points, marks=pytest.mark.deep) for points in OTHERS)],
    ids="-".join,
)
def test_a_snapshot_that_is_killed_goes_on(
    copied: Armed, points: Sequence[Failpoint], tmp_path: Path
) -> None:
    for point in points:
        copied.arm(point)
    with copied.connect() as connection:
        writer = Writer(connection)
        with meanwhile(writer.commit, every=0.2):
            copied.run("up", "--detach")
            until(lambda: not any(copied.is_armed(point) for point in points), 1800)
    assert writer.done > 10

    assert_equal(copied, tmp_path / "replayed")
