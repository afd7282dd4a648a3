"""Measures the first snapshot of one large table, and what COPY to Parquet would take."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.readable import rate_of_snapshot
from bench.whole.tables import SCHEMA, names
from cdc.demo.stages import CONNECTING
from cdc.stack.process.stack_report import read

CORES: Final = 2
(TABLE,) = names(1)
_BLOCK: Final = 8 * 2**20


def measure(room: Room) -> Iterator[Outcome]:
    """Yield rows per second until they are readable; those of before come with its start."""
    folder, rows = room.fresh("snapshot"), room.sizes.snapshot_rows
    one = Installation(root=folder / "ours", code=ours())
    began = time.monotonic()
    one.create(tables=1, rows=rows)
    room.say(f"{rows:,} rows were made in {time.monotonic() - began:.0f} s")
    with one.postgres_alone() as url:
        rate = copy_to_parquet(url, rows, folder)
    yield snapshot_figure("COPY to Parquet", rows, rate, rows, rows / rate)
    with one.up():
        rate, found, seconds = rate_of_snapshot(
            one, tables=1, rows=rows, began=connected_at(one), seconds=room.sizes.snapshot_seconds
        )
    yield snapshot_figure(one.code.name, rows, rate, found, seconds)


def snapshot_figure(way: str, rows: int, rate: float, found: int, seconds: float) -> Outcome:
    """Return the rate at which rows became readable, ``found`` of all ``rows`` in the seconds."""
    if not found:
        return NotMeasured(
            name=f"snapshot of {way}", why=f"no row was readable after {seconds:.0f} s"
        )
    note = "" if found >= rows else f"only {found:,} rows in {seconds:.0f} s"
    return Figure(
        name="snapshot", way=way, unit="rows/s", samples=(rate,), parameters={"rows": rows},
        note=note,
    )  # fmt: skip


def connected_at(one: Installation) -> float:
    """Return when the installation began with the source, which is after its servers' start.

    In seconds since 1970. Raises StopIteration if it has not.
    """
    at = next(event["at"] for event in read(one.state)["events"] if event["what"] == CONNECTING)
    return datetime.fromisoformat(at).timestamp()


def copy_to_parquet(url: str, rows: int, folder: Path) -> float:
    """Copy the table to Parquet by ranges of the key, on both cores; return rows per second."""
    step = -(-rows // CORES)
    began = time.monotonic()
    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(lambda n: _copy_range(url, n * step, step, folder / f"{n}.parquet"),
                      range(CORES)))  # fmt: skip
    return rows / (time.monotonic() - began)


def _copy_range(url: str, first: int, count: int, path: Path) -> None:
    query = (
        f"copy (select * from {SCHEMA}.{TABLE} where id > {first} and id <= {first + count})"  # noqa: S608
        " to stdout (format csv, header)"
    )
    with psycopg.connect(url) as conn, conn.cursor() as cursor, cursor.copy(query) as rows:
        reader = csv.open_csv(_Stream(rows), csv.ReadOptions(block_size=_BLOCK))
        with pq.ParquetWriter(path, reader.schema) as writer:
            for batch in reader:
                writer.write_table(pa.Table.from_batches([batch]))


class _Stream:
    """The bytes of a COPY as a file that Arrow reads."""

    closed = False

    def __init__(self, rows: psycopg.Copy) -> None:
        self._rows, self._left = iter(rows), b""

    def read(self, size: int) -> bytes:
        """Return up to so many bytes; none at the end."""
        parts, length = [self._left], len(self._left)
        while length < size and (part := next(self._rows, None)) is not None:
            parts.append(bytes(part))
            length += len(part)
        joined = b"".join(parts)
        self._left = joined[size:]
        return joined[:size]

    def readable(self) -> bool:
        """Return true."""
        return True

    def writable(self) -> bool:
        """Return false."""
        return False

    def seekable(self) -> bool:
        """Return false."""
        return False

    def close(self) -> None:
        """Nothing is left to close: the connection ends with its block."""


SNAPSHOT: Final = Benchmark(
    name="snapshot", title="the first snapshot of a large table", measure=measure, in_quick=False
)
