"""Transactions over several tables, as of a bank: seeded, in a thread of their own."""

import random
import threading
from types import TracebackType
from typing import Any, Final, Self

import psycopg

ACCOUNTS: Final = 2000


class Workload:
    """A workload that commits transactions during the ``with`` block; its error fails the block."""

    def __init__(self, source_url: str, *, seed: int) -> None:
        self._url = source_url
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="workload")
        self._next_move = seed * 1_000_000
        self.committed = 0
        self._some = threading.Condition()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def await_commits(self, more: int, seconds: float = 120) -> None:
        """Wait until so many more transactions are committed."""
        wanted = self.committed + more
        with self._some:
            done = self._some.wait_for(
                lambda: self.committed >= wanted or self._error is not None, timeout=seconds
            )
        assert done, f"{self.committed} transactions, not {wanted}, in {seconds} s"

    def _run(self) -> None:
        try:
            with psycopg.connect(self._url) as connection:
                while not self._stop.wait(0.005):
                    with connection.transaction():
                        self._random.choice([self._move, self._reopen, self._revise])(connection)
                    with self._some:
                        self.committed += 1
                        self._some.notify_all()
        except BaseException as error:  # noqa: BLE001 - raised again by __exit__
            self._error = error

    def _account(self) -> int:
        return self._random.randint(1, ACCOUNTS)

    def _move(self, connection: psycopg.Connection[Any]) -> None:
        """Move money between accounts and record it twice: an update of two rows, two inserts."""
        self._next_move += 1
        # Lock in order of ids, because two workloads may run at once.
        first, second = sorted((self._account(), self._account()))
        amount = self._random.randint(1, 999) / 100
        for account, change in ((first, -amount), (second, amount)):
            connection.execute(
                "UPDATE bank.accounts SET balance = balance + %s, touched = clock_timestamp() "
                "WHERE id = %s",
                (change, account),
            )
        connection.execute(
            "INSERT INTO bank.moves VALUES (%s, %s, %s, %s, clock_timestamp()::timestamp)",
            (self._next_move, first, second, amount),
        )
        connection.execute("INSERT INTO bank.audit VALUES ('move', %s, random())", (amount,))

    def _reopen(self, connection: psycopg.Connection[Any]) -> None:
        """Delete an account with its moves and insert it again, in one transaction."""
        account = self._account()
        connection.execute(
            "DELETE FROM bank.moves WHERE from_id = %s OR to_id = %s", (account, account)
        )
        gone = connection.execute(
            "DELETE FROM bank.accounts WHERE id = %s RETURNING owner, balance", (account,)
        ).fetchone()
        assert gone is not None
        connection.execute(
            "INSERT INTO bank.accounts VALUES (%s, %s, %s, NULL, NULL)", (account, *gone)
        )

    def _revise(self, connection: psycopg.Connection[Any]) -> None:
        """Update a row without changing its large values, which the WAL then leaves out."""
        connection.execute(
            "UPDATE bank.documents SET revision = revision + 1 WHERE id = %s",
            (self._random.randint(1, 50),),
        )
