"""The first snapshot of one large table: ours, before, and what COPY to Parquet would take."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow import csv

from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import before, ours
from bench.whole.installation import Installation
from bench.whole.tables import SCHEMA, names
from cdc.demo.stages import CONNECTING
from cdc.errors import CdcError
from cdc.stack.process.stack_report import read
from cdc.waiting import poll

CORES: Final = 2
(TABLE,) = names(1)
_BLOCK: Final = 8 * 2**20


def measure(room: Room) -> Iterator[Outcome]:
    """Yield rows per second until they are readable."""
    folder, sizes = room.fresh("snapshot"), room.sizes
    one = Installation(root=folder / "ours", code=ours())
    one.create(tables=1, rows=sizes.snapshot_rows)
    with one.postgres_alone() as url:
        yield _figure("COPY to Parquet", sizes.snapshot_rows,
                      copy_to_parquet(url, sizes.snapshot_rows, folder))  # fmt: skip
    yield from _snapshot(room, one, sizes.snapshot_rows)
    try:
        old = Installation(root=folder / "before", code=before())
    except CdcError as error:
        yield NotMeasured(name="snapshot of before", why=str(error))
        return
    old.create(tables=1, rows=sizes.snapshot_rows_before)
    yield from _snapshot(room, old, sizes.snapshot_rows_before)


def _snapshot(room: Room, one: Installation, rows: int) -> Iterator[Outcome]:
    began = time.time()
    with one.up():
        began = connected_at(one) or began
        seconds, readable = _await_rows(one, rows, began, room.sizes.snapshot_seconds)
    if not readable:
        yield NotMeasured(
            name=f"snapshot of {one.code.name}", why=f"no row was readable after {seconds:.0f} s"
        )
        return
    note = "" if readable >= rows else f"only {readable:,} rows in {seconds:.0f} s"
    yield _figure(one.code.name, rows, readable / seconds, note)


def _figure(way: str, rows: int, rate: float, note: str = "") -> Figure:
    return Figure(
        name="snapshot", way=way, unit="rows/s", samples=(rate,), parameters={"rows": rows},
        note=note,
    )  # fmt: skip


def connected_at(one: Installation) -> float | None:
    """Return when the installation began with the source, which is after its servers' start."""
    events = [event for event in read(one.state)["events"] if event["what"] == CONNECTING]
    return datetime.fromisoformat(events[0]["at"]).timestamp() if events else None


def _await_rows(one: Installation, rows: int, began: float, patience: float) -> tuple[float, int]:
    """Return the seconds until all rows were in a published cut, and how many were at the end."""
    found = 0

    def all_readable() -> bool:
        nonlocal found
        found = max(found, readable_rows(one, names(1)))
        return found >= rows

    poll(all_readable, bool, every=0.5, seconds=max(1.0, began + patience - time.time()))
    cut = one.last_cut()
    done = found >= rows and cut is not None
    at = cut.published_at.timestamp() if done and cut is not None else time.time()
    return max(at - began, 0.001), found


def readable_rows(one: Installation, tables: list[str]) -> int:
    """Return the rows of the tables at the newest cut, from their statistics."""
    cut = one.last_cut()
    if cut is None or cut.lsn is None:
        return 0
    entries = filter(None, (cut.entry(f"{SCHEMA}.{name}") for name in tables))
    return sum(_rows(e.path, e.version) for e in entries)


def _rows(path: str, version: int) -> int:
    opened = DeltaTable(path, version=version)
    return sum(opened.get_add_actions()["num_records"].to_pylist())


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
