"""Change a database at random on several connections at once, until stopped."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

import psycopg
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from tests.soak.schema import bystanders, catalogue
from tests.soak.schema.facts import Database, Statement, Table
from tests.soak.schema.moves import Move, Rows
from tests.soak.schema.rows import row_change
from tests.soak.schema.session import Session
from tests.soak.schema.structures import Change, structure_change
from tests.soak.schema.tally import Tally
from tests.soak.schema.transactions import transaction

WRITERS: Final = 3
_WRITER_PAUSE: Final = 0.05
_STRUCTURE_PAUSE: Final = 5.0
_CONNECTOR_SECONDS: Final = 120
_TRIES: Final = 12
_CHANGES: Final = 40
_CONFIRMED: Final = (
    "SELECT bool_and(confirmed_flush_lsn >= %s) FROM pg_replication_slots WHERE NOT temporary"
)


class Walk:
    """A walk that changes the database during the ``with`` block; a thread's error fails it."""

    def __init__(
        self, source_url: str, *, seed: int, moves: Sequence[tuple[Move, Table]] = ()
    ) -> None:
        """Prepare a walk that makes each of ``moves`` once, given with the table it copies."""
        self._url = source_url
        self._moves = list(moves)
        self._seed = seed
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self.tally = Tally()
        with psycopg.connect(source_url) as connection:
            self._database = bystanders.without_bystanders(catalogue.read(connection))
        self.steps = 0
        """Steps of moves so far, each with a row in every bystander."""
        self.unmarked: list[str] = []
        """Tables in which no row could be changed after a move."""
        works: list[Callable[[random.Random], None]] = [*[self._write] * WRITERS, self._restructure]
        self._threads = [
            threading.Thread(target=self._work, args=(work, number), name=f"walk {number}")
            for number, work in enumerate(works)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if kind is None and self._errors:
            raise self._errors[0]

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds, or until a thread fails."""
        self._stop.wait(seconds)

    @property
    def unmoved(self) -> tuple[str, ...]:
        """The moves that have not been made yet."""
        return tuple(move.name for move, _ in self._moves)

    def _work(self, work: Callable[[random.Random], None], number: int) -> None:
        try:
            work(random.Random(f"{self._seed} {number}"))
        except BaseException as error:  # noqa: BLE001 - raised again by __exit__
            self._errors.append(error)
            self._stop.set()

    def _write(self, rng: random.Random) -> None:
        session = Session.open(self._url, self.tally, lock_seconds=2)
        with session.connection:
            while not self._stop.wait(_WRITER_PAUSE):
                session.perform(transaction(self._database, rng))

    def _restructure(self, rng: random.Random) -> None:
        session = Session.open(self._url, self.tally, lock_seconds=10)
        number = 0
        with session.connection:
            while not self._stop.wait(_STRUCTURE_PAUSE):
                number += 1
                if self._moves:
                    self._move(session, rng, *self._moves.pop(rng.randrange(len(self._moves))))
                change = structure_change(self._database, rng, number)
                self._restructure_one(session, change, rng)
                self._database = _read_database(session) or self._database

    def _move(self, session: Session, rng: random.Random, move: Move, copied: Table) -> None:
        """Make all steps of a move, so that no table stays away; then change all other tables."""
        for statement in move.statements(Rows(table=copied)):
            _insist(session, statement)
            self.steps += 1
            _insist(session, bystanders.write(f"{move.name} {self.steps}", self.steps))
        self._database = _read_database(session) or self._database
        for table in self._database.tables:
            if table.plain != move.quoted and not _change_a_row(session, table, rng):
                self.unmarked.append(f"{table.plain} took no row beside {move.name}")

    def _restructure_one(self, session: Session, change: Change, rng: random.Random) -> None:
        """Change a structure in one transaction with row changes before and after it."""
        kind, done = change.statement.kind, Counter[str]()
        if change.alone and not _is_possible(session, change):
            session.tally.ended("refused")
            return
        session.execute("BEGIN")
        if not self._before(session, change, rng, done) or not session.attempt(change.statement):
            session.execute("ROLLBACK")
            session.tally.ended("refused")
            return
        now = _read_database(session)
        if now is None:
            session.execute("ROLLBACK")
            session.tally.ended("refused")
            return
        self._rows(session, _same(now, change.table), rng, done)
        session.end(done, commits=rng.random() < 0.9, structure=kind)

    def _before(
        self, session: Session, change: Change, rng: random.Random, done: Counter[str]
    ) -> bool:
        """Take the lock first; if ``alone``, then wait until the connector has read all before it.

        Wait before locking too: on the table's last change the connector needs the lock itself.
        """
        if change.alone:
            self._await_connector()
        if not session.attempt(change.lock):
            return False
        if change.alone:
            self._await_connector()
        else:
            self._rows(session, change.table, rng, done)
        return True

    def _rows(self, session: Session, table: Table, rng: random.Random, done: Counter[str]) -> None:
        for _ in range(rng.randint(0, 3)):
            statement = row_change(table, rng)
            if session.guarded(statement):
                done[statement.kind] += 1

    def _await_connector(self) -> None:
        """Wait until the slots have confirmed the current WAL position; heartbeats advance them."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            now = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
            waiting = Retrying(
                retry=retry_if_result(lambda row: row != (True,)),
                wait=wait_fixed(0.2),
                stop=stop_after_delay(_CONNECTOR_SECONDS),
            )
            waiting(lambda: connection.execute(_CONFIRMED.encode(), now).fetchone())


def _is_possible(session: Session, change: Change) -> bool:
    """Try the change in a transaction that is rolled back, before waiting for the connector.

    A savepoint will not do: if one transaction rewrites a table with large values twice and undoes
    the first time, Postgres 17.11 sometimes cannot decode it ("unexpected duplicate for tablespace
    0, relfilenumber"), and its slot never moves again.
    """
    session.execute("BEGIN")
    taken = session.attempt(change.lock) and session.attempt(change.statement)
    session.execute("ROLLBACK")
    return taken


def _insist(session: Session, statement: Statement) -> None:
    if not any(_commit(session, statement) for _ in range(_TRIES)):
        raise AssertionError(f"{statement.kind} could not be done: {session.tally.refused}")


def _change_a_row(session: Session, table: Table, rng: random.Random) -> bool:
    """Try to commit a change of a row of the table; return whether one succeeded."""
    for _ in range(_CHANGES):
        statement = row_change(table, rng)
        session.execute("BEGIN")
        if not (session.attempt(statement) and session.rows > 0):
            session.execute("ROLLBACK")
        elif session.end(Counter({f"{statement.kind}, beside a move": 1}), commits=True):
            return True
    return False


def _commit(session: Session, statement: Statement) -> bool:
    """Run one statement as a transaction; return False if refused, as by a writer's lock."""
    session.execute("BEGIN")
    if not session.attempt(statement):
        session.execute("ROLLBACK")
        return False
    moved = statement.kind if statement.kind != bystanders.KIND else None
    return session.end(Counter({statement.kind: 1}), commits=True, structure=moved)


def _read_database(session: Session) -> Database | None:
    """Read the catalogue; None if a table stays locked, since reading it counts rows."""
    try:
        return bystanders.without_bystanders(catalogue.read(session.connection))
    except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as error:
        session.tally.refuse("look", error.sqlstate or "")
        return None


def _same(database: Database, table: Table) -> Table:
    return next(other for other in database.tables if other.plain == table.plain)
