"""The job's memory over time, under a steady load. An hour of it shows whether it grows."""

import os
import time
from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.process_tree import EVERY_SECONDS, Sampler
from bench.core.room import Benchmark, Room
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.load import Load
from bench.whole.tables import names

MINUTES: Final = "BENCH_MEMORY_MINUTES"
"""Environment variable: how long to look; an hour for the table of what is to be reached."""
TABLES: Final = 8
KEPT_EVERY: Final = 20
"""Of so many samples of memory one is kept."""


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the memory of the job, five seconds between two samples."""
    seconds = float(os.environ.get(MINUTES, "0")) * 60
    if not seconds:
        yield NotMeasured(name="memory over time", why=f"{MINUTES} is not set; 60 for an hour")
        return
    one = Installation(root=room.fresh("memory") / "installation", code=ours())
    one.create(tables=TABLES, rows=room.sizes.rows_per_table)
    with one.up():
        load = Load(url=one.source_url, tables=names(TABLES), marked=names(1),
                    rows=room.sizes.rows_per_table, rate=500, seed=room.seed)  # fmt: skip
        with Sampler(pids={"job": one.pids()["job"]}) as sampler, load:
            began = time.monotonic()
            load.wait(seconds)
            room.say(f"{time.monotonic() - began:.0f} s of load")
    yield Figure(
        name="memory over time", way="ours", unit="B",
        samples=tuple(sampler.rss["job"][::KEPT_EVERY]),
        parameters={"every_seconds": EVERY_SECONDS * KEPT_EVERY, "rate": 500},
    )  # fmt: skip


MEMORY: Final = Benchmark(
    name="memory", title="the job's memory over time", measure=measure, in_quick=False
)
