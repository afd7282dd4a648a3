"""Keeps the shop busy with writers at a given rate, and counts what they committed."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, Self

import psycopg

from cdc.demo.freshness_meter import FreshnessMeter
from cdc.demo.shop_transactions import Clerk, GivenUpError, choose

NOTE_EVERY: Final = 5  # the LSN of every fifth commit is read, which costs a round trip


@dataclass(kw_only=True)
class Workload:
    """Runs writers with a thread and a connection each; use it as a context manager.

    ``rate`` is the transactions per second of all writers together, at most.
    """

    url: str
    sizes: Mapping[str, int]
    rate: float
    seed: int
    writers: int = 2
    freshness: FreshnessMeter = field(default_factory=FreshnessMeter)
    commits: int = 0
    changes: Counter[str] = field(default_factory=Counter)  # committed rows by table
    failure: BaseException | None = None
    started_at: float = 0.0
    last_commit_at: float = 0.0  # not later than the last commit, by a millisecond or two
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.started_at = time.time()
        for share in range(self.writers):
            thread = threading.Thread(
                target=self._write, args=(share,), name=f"writer-{share}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """Raise the error with which a writer died, if one did."""
        if self.failure is not None:
            raise self.failure

    def _write(self, share: int) -> None:
        try:
            with psycopg.connect(self.url) as conn, conn.cursor() as cursor:
                # Distinguishes our sessions from others, such as after a crash of the server.
                cursor.execute("set application_name = 'wal2lake-demo'")
                conn.commit()
                self._loop(conn, self._clerk(cursor, share))
        except psycopg.Error as error:
            self.failure = error

    def _clerk(self, cursor: psycopg.Cursor, share: int) -> Clerk:
        return Clerk(
            cursor=cursor,
            rng=Random(self.seed * self.writers + share),  # noqa: S311 - a choice, no secret
            sizes=self.sizes,
            share=share,
            shares=self.writers,
        )

    def _loop(self, conn: psycopg.Connection, clerk: Clerk) -> None:
        due = time.monotonic()
        number = 0
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            # Lost time is not made up for: the rate is an upper bound.
            due = max(due + self.writers / self.rate, time.monotonic() - 1)
            if self._transact(conn, clerk):
                number += 1
                if number % NOTE_EVERY == 0:
                    self._note(conn, clerk, time.time())

    def _transact(self, conn: psycopg.Connection, clerk: Clerk) -> bool:
        """Run one transaction; return whether it changed anything."""
        clerk.changed.clear()
        try:
            with conn.transaction():
                choose(clerk.rng)(clerk)
                committing_at = time.time()
        except GivenUpError:
            return False
        if not clerk.changed.total():
            return False
        with self._lock:
            self.commits += 1
            self.changes.update(clerk.changed)
            # The source's commit times, with which this is compared, are in milliseconds.
            self.last_commit_at = max(self.last_commit_at, committing_at - 0.002)
        return True

    def _note(self, conn: psycopg.Connection, clerk: Clerk, committed: float) -> None:
        clerk.cursor.execute("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
        (lsn,) = clerk.cursor.fetchone() or (0,)
        conn.commit()
        self.freshness.add_commit(lsn=int(lsn), at=committed)
