"""Try statements on one connection, which survives when Postgres refuses them."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import psycopg

from tests.soak.schema.catalogue import Connection
from tests.soak.schema.facts import Statement
from tests.soak.schema.tally import Tally
from tests.soak.schema.transactions import Transaction

_SYNTAX_ERROR: Final = "42601"
_NOT_OURS: Final = ("08", "53", "57", "58", "XX")
"""SQLSTATE classes of errors of the server rather than of a statement."""


@dataclass(slots=True, kw_only=True)
class Session:
    """Runs statements over a connection, and keeps a tally of them."""

    connection: Connection
    tally: Tally
    rows: int = -1
    """The number of rows that the last statement changed."""

    @classmethod
    def open(cls, url: str, tally: Tally, *, lock_seconds: int) -> "Session":
        """Connect; a lock is awaited for at most ``lock_seconds``."""
        connection = psycopg.connect(url, autocommit=True)
        connection.execute(f"SET lock_timeout = '{lock_seconds}s'".encode())
        return cls(connection=connection, tally=tally)

    def perform(self, transaction: Transaction) -> None:
        """Run a random transaction and count its outcome."""
        done = Counter[str]()
        self.execute("BEGIN")
        for statement in transaction.statements:
            attempt = self.guarded if transaction.guarded else self.attempt
            if attempt(statement):
                done[statement.kind] += 1
            elif not transaction.guarded:
                self.execute("ROLLBACK")
                self.tally.ended("refused")
                return
        self.end(done, commits=transaction.commits)

    def end(self, done: Counter[str], *, commits: bool, structure: str | None = None) -> bool:
        """End the transaction; return whether it committed. Deferred constraints may refuse it."""
        if not commits:
            self.execute("ROLLBACK")
            self.tally.ended("rolled back")
        elif self.attempt(Statement(kind="commit", sql="COMMIT")):
            self.tally.committed(done, structure)
            return True
        else:
            self.tally.ended("refused")
        return False

    def guarded(self, statement: Statement) -> bool:
        """Attempt a statement in a savepoint, so that only it is undone if refused."""
        self.execute("SAVEPOINT soak_outer")
        done = self.attempt(statement)
        self.execute("RELEASE soak_outer" if done else "ROLLBACK TO soak_outer")
        return done

    def attempt(self, statement: Statement) -> bool:
        """Return whether Postgres took the statement; raise other errors (connection, syntax)."""
        try:
            self.execute(statement.sql)
        except psycopg.Error as error:
            state = error.sqlstate
            if state is None or state == _SYNTAX_ERROR or state.startswith(_NOT_OURS):
                raise
            self.tally.refuse(statement.kind, state)
            return False
        return True

    def execute(self, sql: str) -> None:
        """Execute SQL and note how many rows it changed."""
        self.rows = self.connection.execute(sql.encode()).rowcount
