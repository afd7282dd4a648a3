"""A load on the source at a given rate, with markers that tell when commits are readable."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

import psycopg
from psycopg import sql

from bench.whole.tables import MARKERS_FROM, Writer, identifier, lsn

WRITERS: Final = 2
MARKS_PER_SECOND: Final = 4
_MARK: Final = sql.SQL("insert into {} values (%s, 0, 0, 'marker', null, now())")


@dataclass(frozen=True, slots=True)
class Mark:
    """Records a transaction that inserted the row ``id`` into every marked table."""

    id: int
    committed_at: float  # when the commit had returned, in seconds since 1970
    lsn: int  # at or after the commit


@dataclass(kw_only=True)
class Load:
    """Writers at ``rate`` changes per second together; use it as a context manager."""

    url: str
    tables: list[str]
    marked: list[str]  # tables that get markers
    rows: int
    rate: float
    seed: int
    marks: list[Mark] = field(default_factory=list)
    changes: int = 0
    failure: BaseException | None = None
    seconds: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        targets = [partial(self._write, number) for number in range(WRITERS)]
        self._threads = [
            threading.Thread(target=self._guarded, args=(target,), daemon=True)
            for target in (*targets, self._mark)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.seconds = time.monotonic() - self._began
        if self.failure is not None:
            raise self.failure

    @property
    def last_lsn(self) -> int:
        """An LSN at or after every commit of the load; call it when the load is over."""
        with psycopg.connect(self.url) as conn:
            return lsn(conn)

    def wait(self, seconds: float) -> None:
        """Let the load go on for so long, or until a writer fails."""
        self._stop.wait(seconds)

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except psycopg.Error as error:
            self.failure = error
            self._stop.set()

    def _write(self, number: int) -> None:
        with psycopg.connect(self.url, autocommit=True) as conn:
            writer = Writer(conn=conn, tables=self.tables, rows=self.rows, number=number,
                            writers=WRITERS, seed=self.seed)  # fmt: skip
            size = 10 if self.rate <= 1_000 else 40  # noqa: PLR2004 - statements a second
            every = size * WRITERS / self.rate
            due = time.monotonic()
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                # Lost time is not made up for: the rate is an upper bound.
                due = max(due + every, time.monotonic() - 1)
                made = writer.change(size)
                with self._lock:
                    self.changes += made

    def _mark(self) -> None:
        number = MARKERS_FROM + int(time.time() * 1000)  # higher than those of any load before
        with psycopg.connect(self.url, autocommit=True) as conn:
            while not self._stop.wait(1 / MARKS_PER_SECOND):
                number += 1
                with conn.transaction():
                    for table in self.marked:
                        conn.execute(_MARK.format(identifier(table)), [number])
                at = time.time()
                self.marks.append(Mark(number, at, lsn(conn)))


def freshness(marks: list[Mark], seen: list[tuple[float, int]]) -> tuple[list[float], int]:
    """Return the seconds from each commit until it was read, and how many were never read.

    ``seen`` are times with the highest marker that was read by then, in order.
    """
    seconds, place = [], 0
    for mark in sorted(marks, key=lambda mark: mark.id):
        while place < len(seen) and seen[place][1] < mark.id:
            place += 1
        if place < len(seen):
            seconds.append(max(0.0, seen[place][0] - mark.committed_at))
    return seconds, len(marks) - len(seconds)
