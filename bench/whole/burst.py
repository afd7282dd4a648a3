"""Changes as fast as two connections commit them."""

import threading
import time
from dataclasses import dataclass
from typing import Final

import psycopg

from bench.whole.tables import Writer, lsn

WRITERS: Final = 2
PER_STATEMENT: Final = 100


@dataclass(frozen=True, slots=True)
class Burst:
    """Changes that were committed as fast as two connections can."""

    changes: int
    began: float  # in seconds since 1970
    lsn: int


def burst(url: str, *, tables: list[str], changes: int, rows: int, seed: int) -> Burst:
    """Commit about so many changes."""
    made, began = [0] * WRITERS, time.time()

    def write(number: int) -> None:
        with psycopg.connect(url, autocommit=True) as conn:
            writer = Writer(conn=conn, tables=tables, rows=rows, number=number, writers=WRITERS,
                            seed=seed)  # fmt: skip
            while made[number] < changes // WRITERS:
                made[number] += writer.change(PER_STATEMENT)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with psycopg.connect(url) as conn:
        return Burst(sum(made), began, lsn(conn))
