"""Measures the limits of Postgres and of Parquet on this machine, without wal2lake."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pyarrow.parquet as pq

from bench.apply.batch import UNIFORM, Changes, Made
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.limits.debezium import debezium_alone
from bench.whole.burst import burst
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.tables import SCHEMA, names

TABLES: Final = 8
SLOT: Final = "bench_limit"
_DECODE: Final = (
    "select count(*) from pg_logical_slot_peek_binary_changes("
    "%s, null, null, 'proto_version', '1', 'publication_names', %s)"
)


def measure(room: Room) -> Iterator[Outcome]:
    """Yield what decoding, copying and writing could do alone."""
    folder, sizes = room.fresh("limits"), room.sizes
    one = Installation(root=folder / "source", code=ours())
    one.create(tables=TABLES, rows=max(1, sizes.limit_rows // TABLES))
    with one.postgres_alone() as url:
        yield from _copy(url)
        yield from _decoding(room, url)
    yield from _parquet(room, folder)
    if sizes.name != "quick":
        yield from debezium_alone(room, folder / "debezium", tables=TABLES)


def _figure(way: str, unit: str, rate: float) -> Figure:
    return Figure(name="limit", way=way, unit=unit, samples=(rate,))


def _copy(url: str) -> Iterator[Outcome]:
    with psycopg.connect(url) as conn, conn.cursor() as cursor:
        began, rows = time.monotonic(), 0
        for name in names(TABLES):
            with cursor.copy(f"copy {SCHEMA}.{name} to stdout") as copy:
                for _ in copy:
                    pass
            rows += cursor.rowcount
        yield _figure("COPY to a client", "rows/s", rows / (time.monotonic() - began))


def _decoding(room: Room, url: str) -> Iterator[Outcome]:
    rows = max(1, room.sizes.limit_rows // TABLES)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(f"create publication {SLOT} for tables in schema {SCHEMA}")
        conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [SLOT])
        done = burst(url, tables=names(TABLES), changes=room.sizes.limit_changes, rows=rows,
                     seed=room.seed)  # fmt: skip
        began = time.monotonic()
        conn.execute(_DECODE, [SLOT, SLOT]).fetchone()
        took = time.monotonic() - began
        yield _figure("decoding inside Postgres", "changes/s", done.changes / took)
        yield _received(url, done.changes, done.lsn)


def _received(url: str, changes: int, lsn: int) -> Outcome:
    """Let pg_recvlogical send the changes to nowhere."""
    program = shutil.which("pg_recvlogical")
    if program is None:
        return NotMeasured(name="pg_recvlogical to nowhere", why="the program is not installed")
    end = f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
    options = ["-o", "proto_version=1", "-o", f"publication_names={SLOT}", "--no-loop"]
    line = [program, "--dbname", url, "--slot", SLOT, "--start", "--file", "/dev/null"]
    began = time.monotonic()
    done = subprocess.run(
        [*line, "--endpos", end, *options], capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        return NotMeasured(name="pg_recvlogical to nowhere", why=done.stderr.strip()[:200])
    return _figure("pg_recvlogical to nowhere", "changes/s", changes / (time.monotonic() - began))


def _parquet(room: Room, folder: Path) -> Iterator[Outcome]:
    rows = Changes(made=Made(room.sizes.limit_rows), keys=UNIFORM, seed=room.seed).batch(
        max(10, room.sizes.limit_rows // 10)
    ).rows  # fmt: skip
    seconds = []
    for number in range(room.sizes.repetitions):
        began = time.monotonic()
        pq.write_table(rows, folder / f"{number}.parquet")
        seconds.append(time.monotonic() - began)
    yield Figure(
        name="limit", way="Parquet write", unit="rows/s",
        samples=tuple(len(rows) / took for took in seconds),
    )  # fmt: skip


LIMITS: Final = Benchmark(name="limits", title="the parts without wal2lake", measure=measure)
