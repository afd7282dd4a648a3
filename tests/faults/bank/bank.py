"""A small bank whose transactions keep promises that every version of the lake must keep too.

The sum of all balances is constant. A mark is written to two tables in one transaction, and to one
that takes inserts only. No counter ever decreases. Rows are deleted and inserted again. The keys of
a ring change places. A table is emptied and filled again. Entries are numbered for each counter,
some come two hours late, and at times one is missing. All rows of another table change together; in
``Restructured`` so do thousands of rows, all columns of a wide table, and a structure.
"""

import random
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import psycopg

from tests.faults.bank.armed import Armed
from tests.meanwhile import meanwhile
from tests.waiting import until

ACCOUNTS: Final = 20
COUNTERS: Final = 5
SELDOM: Final = 10
"""One transaction in this many writes to the table without a key, one to the ring, and so on."""
LATE: Final = 7  # one entry in this many is late
RING: Final = 8
PARTS: Final = 6  # rows of each filling of the table that is emptied
BULK: Final = 300  # rows that change together
THOUSANDS: Final = 5000  # rows of the largest transaction
COLUMNS: Final = tuple(f"c{i}" for i in range(1, 201))  # of the wide table, all with the same value
Connect = Callable[[], psycopg.Connection[Any]]
Commits = MutableMapping[int, tuple[int, int]]
"""By mark: a WAL position before the commit, and one at or after its end."""
TOTAL: Final = ACCOUNTS * 100
PAUSE_SECONDS: Final = 0.15
TABLES: Final = (
    *("accounts", "debits", "credits", "audit", "counters", "flicker", "visits", "odd"),
    *("ring", "emptied", "entries", "bulk", "thousands", "broad", "reshaped"),
)
SQL: Final = f"""
CREATE SCHEMA bank;
CREATE SCHEMA gone;
CREATE TABLE bank.accounts (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE bank.debits (mark bigint PRIMARY KEY, amount int);
CREATE TABLE bank.credits (mark bigint PRIMARY KEY, amount int);
CREATE TABLE bank.audit (mark bigint, what text);
CREATE TABLE bank.counters (name int PRIMARY KEY, n bigint NOT NULL);
CREATE TABLE bank.flicker (id int PRIMARY KEY, n bigint, body text);
CREATE TABLE bank.visits (who text, page int, at timestamptz NOT NULL DEFAULT now());
ALTER TABLE bank.visits REPLICA IDENTITY FULL;
CREATE TABLE bank.odd (id int PRIMARY KEY, day date);
CREATE TABLE gone.stays (id int PRIMARY KEY);
CREATE TABLE bank.ring (id int PRIMARY KEY, name int NOT NULL);
CREATE TABLE bank.emptied (part int PRIMARY KEY, filling bigint NOT NULL);
CREATE TABLE bank.entries (
  counter int, version bigint, at timestamptz NOT NULL, amount int, PRIMARY KEY (counter, version));
CREATE TABLE bank.bulk (id int PRIMARY KEY, change bigint NOT NULL, body text);
CREATE TABLE bank.thousands (id int PRIMARY KEY, change bigint NOT NULL);
CREATE TABLE bank.broad (id int PRIMARY KEY, {" bigint, ".join(COLUMNS)} bigint);
CREATE TABLE bank.reshaped (id int PRIMARY KEY, n bigint NOT NULL, shape bigint);
INSERT INTO bank.accounts SELECT i, 100 FROM generate_series(1, {ACCOUNTS}) i;
INSERT INTO bank.counters SELECT i, 0 FROM generate_series(1, {COUNTERS}) i;
INSERT INTO bank.flicker SELECT i, 0, repeat(md5(i::text), 200) FROM generate_series(1, 10) i;
INSERT INTO bank.visits SELECT 'v' || i % 5, i % 3 FROM generate_series(1, 30) i;
INSERT INTO bank.odd SELECT i, date '2024-01-01' + i FROM generate_series(1, 10) i;
INSERT INTO bank.ring SELECT i, i FROM generate_series(1, {RING}) i;
INSERT INTO bank.emptied SELECT i, 0 FROM generate_series(1, {PARTS}) i;
INSERT INTO bank.bulk SELECT i, 0, 'body ' || i FROM generate_series(1, {BULK}) i;
INSERT INTO bank.thousands SELECT i, 0 FROM generate_series(1, {THOUSANDS}) i;
INSERT INTO bank.broad SELECT i{", 0" * len(COLUMNS)} FROM generate_series(1, 20) i;
INSERT INTO bank.reshaped SELECT i, 0, 0 FROM generate_series(1, 5) i;
"""


class Bank:
    """Commits the bank's transactions, each with a mark of its own."""

    def __init__(self, connect: Connect, commits: Commits, *, seed: int) -> None:
        self._connect = connect
        self._connection = connect()
        self._commits = commits
        self._random = random.Random(seed)
        query = "SELECT coalesce(max(mark), 0) FROM bank.debits"
        newest = self._connection.execute(query).fetchone()
        assert newest is not None
        self._marks = count(newest[0] + 1)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def transact(self) -> None:
        """Commit one transaction; reconnect if the source dies, when its outcome is unknown."""
        try:
            self._transact()
        except psycopg.OperationalError:
            self._connection.close()
            until(self._reconnect)

    def _reconnect(self) -> bool:
        try:
            self._connection = self._connect()
        except psycopg.OperationalError:
            return False
        return True

    def _transact(self) -> None:
        mark = next(self._marks)
        amount = self._random.randint(1, 9)
        first, second = self._random.sample(range(1, ACCOUNTS + 1), 2)
        with self._connection.transaction():
            self._move(mark, amount, first, second)
            self._flicker(mark)
            self._seldom(mark)
            before = self._wal()
        self._commits[mark] = (before, self._wal())

    def _wal(self) -> int:
        row = self._connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        assert row is not None
        return int(row[0])

    def _move(self, mark: int, amount: int, first: int, second: int) -> None:
        execute = self._connection.execute
        execute("UPDATE bank.accounts SET balance = balance - %s WHERE id = %s", (amount, first))
        execute("INSERT INTO bank.debits VALUES (%s, %s)", (mark, amount))
        execute("INSERT INTO bank.audit VALUES (%s, 'move')", (mark,))
        execute("UPDATE bank.accounts SET balance = balance + %s WHERE id = %s", (amount, second))
        execute("INSERT INTO bank.credits VALUES (%s, %s)", (mark, amount))
        counter = self._random.randint(1, COUNTERS)
        execute("UPDATE bank.counters SET n = n + 1 WHERE name = %s", (counter,))
        late = f"{2 * (mark % LATE == 0)} hours"
        execute(
            "INSERT INTO bank.entries SELECT name, n, now() - %s::interval, %s "
            "FROM bank.counters WHERE name = %s",
            (late, amount, counter),
        )

    def _flicker(self, mark: int) -> None:
        """Delete and insert a row again, or change it without its large value."""
        number = self._random.randint(1, 10)
        if mark % 2:
            deleted = self._connection.execute(
                "DELETE FROM bank.flicker WHERE id = %s RETURNING body", (number,)
            ).fetchone()
            assert deleted is not None
            self._connection.execute(
                "INSERT INTO bank.flicker VALUES (%s, %s, %s)", (number, mark, deleted[0])
            )
        else:
            self._connection.execute("UPDATE bank.flicker SET n = %s WHERE id = %s", (mark, number))

    def _seldom(self, mark: int) -> None:
        turn, rest = divmod(mark, SELDOM)
        if rest == 0:
            self._visit(mark)
        elif rest == 2:
            self._swap(turn)
        elif rest == 4 and not turn % 2:
            self._empty(mark)
        elif rest == 5:
            self._miss(turn)
        elif rest == 6 and not turn % 4:
            self._connection.execute("UPDATE bank.bulk SET change = %s", (mark,))

    def _swap(self, turn: int) -> None:
        """Swap the keys of two neighbours of the ring, by way of an unused key."""
        first, second = turn % RING + 1, (turn + 1) % RING + 1
        for old, new in ((first, -1), (second, first), (-1, second)):
            self._connection.execute("UPDATE bank.ring SET id = %s WHERE id = %s", (new, old))

    def _empty(self, mark: int) -> None:
        self._connection.execute("TRUNCATE bank.emptied")
        self._connection.execute(
            "INSERT INTO bank.emptied SELECT i, %s FROM generate_series(1, %s) i", (mark, PARTS)
        )

    def _miss(self, turn: int) -> None:
        """Delete an entry in the middle of those of a counter; or put in all that are missing."""
        if turn % 2:
            self._connection.execute(
                "DELETE FROM bank.entries WHERE (counter, version) IN "
                "(SELECT name, 1 + n / 2 FROM bank.counters WHERE name = %s)",
                (turn % COUNTERS + 1,),
            )
        else:
            self._connection.execute(
                "INSERT INTO bank.entries SELECT name, version, now(), 1 "
                "FROM bank.counters, generate_series(1, n) version ON CONFLICT DO NOTHING"
            )

    def _visit(self, mark: int) -> None:
        who = f"v{self._random.randint(1, 5)}"
        self._connection.execute(
            "INSERT INTO bank.visits (who, page) VALUES (%s, %s)", (who, mark % 3)
        )
        if not mark % (2 * SELDOM):
            self._connection.execute(
                "DELETE FROM bank.visits WHERE ctid IN (SELECT ctid FROM bank.visits "
                "WHERE who = %s LIMIT 1)",
                (who,),
            )


@contextmanager
def at_work(
    installation: Armed, commits: Commits, *, seed: int, kind: type[Bank] = Bank
) -> Iterator[None]:
    """Commit transactions until the end of the block."""
    bank = kind(installation.connect, commits, seed=seed)
    try:
        bank.transact()
        with meanwhile(bank.transact, every=PAUSE_SECONDS):
            yield
    finally:
        bank.close()
