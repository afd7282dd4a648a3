"""One connection that tries statements, and lives on when Postgres refuses them."""

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
"""Classes of errors that say something of the server and nothing of a statement."""


@dataclass(slots=True, kw_only=True)
class Session:
    connection: Connection
    tally: Tally
    rows: int = -1
    """That the last statement changed."""

    @classmethod
    def open(cls, url: str, tally: Tally, *, lock_seconds: int) -> "Session":
        connection = psycopg.connect(url, autocommit=True)
        connection.execute(f"SET lock_timeout = '{lock_seconds}s'".encode())
        return cls(connection=connection, tally=tally)

    def perform(self, transaction: Transaction) -> None:
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
        """Also COMMIT may be refused: there are deferred constraints."""
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
        """Undone alone, where it is refused."""
        self.execute("SAVEPOINT soak_outer")
        done = self.attempt(statement)
        self.execute("RELEASE soak_outer" if done else "ROLLBACK TO soak_outer")
        return done

    def attempt(self, statement: Statement) -> bool:
        """Raises what is no refusal: a lost connection, a statement that is no SQL."""
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
        self.rows = self.connection.execute(sql.encode()).rowcount
