"""The job's memory over time, under a steady load. An hour of it shows whether it grows."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

import psutil

from bench.core.figure import Figure, Outcome
from bench.core.process_tree import Sampler
from bench.core.room import Benchmark, Room
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.load import Load
from bench.whole.readable import await_all
from bench.whole.tables import names

TABLES: Final = 8
KEPT_EVERY: Final = 20
"""Of so many samples of memory one is kept."""


def memory_over(minutes: float) -> Benchmark:
    """Return the benchmark that looks at the job for so many minutes."""
    return Benchmark(
        name="memory",
        title=f"the job's memory over {minutes:g} minutes",
        measure=partial(_measure, minutes * 60),
        bounded=False,
    )


def _measure(seconds: float, room: Room) -> Iterator[Outcome]:
    one = Installation(root=room.fresh("memory") / "installation", code=ours())
    one.create(tables=TABLES, rows=room.sizes.rows_per_table)
    with one.up():
        await_all(one, tables=TABLES, rows=room.sizes.rows_per_table,
                  seconds=room.sizes.patience_seconds * 5)  # fmt: skip
        load = Load(url=one.source_url, tables=names(TABLES), marked=names(1),
                    rows=room.sizes.rows_per_table, rate=500, seed=room.seed)  # fmt: skip
        job = one.pids()["job"]
        with Sampler(pids={"ours": job, "the JVM of it": _java(job)}) as sampler, load:
            began = time.monotonic()
            load.wait(seconds)
            passed = time.monotonic() - began
    for way, found in sampler.rss.items():
        kept = tuple(found[::KEPT_EVERY])
        yield Figure(
            name="memory over time", way=way, unit="B",
            samples=kept,
            parameters={"every_seconds": passed / len(kept), "rate": 500, "tables": TABLES},
        )  # fmt: skip


def _java(job: int) -> int:
    """Return the process of Spark's JVM."""
    [java] = [child.pid for child in psutil.Process(job).children() if child.name() == "java"]
    return java
