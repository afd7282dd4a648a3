"""What an installation costs while nothing changes."""

import time
from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure, Outcome
from bench.core.process_tree import Sampler
from bench.core.room import Benchmark, Room
from bench.whole.code import ours
from bench.whole.installation import Installation

SETTLE_SECONDS: Final = 10.0
"""After a start, so that what it leaves to do is done."""


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the share of one core that each process takes."""
    tables = max(room.sizes.table_counts)
    one = Installation(root=room.fresh("idle") / "installation", code=ours())
    one.create(tables=tables, rows=100)
    with one.up():
        time.sleep(SETTLE_SECONDS)
        with Sampler(pids=one.pids()) as sampler:
            time.sleep(room.sizes.idle_seconds)
        for name, seconds in sampler.cpu_seconds.items():
            yield Figure(
                name="idle", way=name, unit="of a core", samples=(seconds / sampler.seconds,),
                parameters={"tables": tables},
            )  # fmt: skip


IDLE: Final = Benchmark(
    name="idle", title="fifty tables without a change", measure=measure, in_quick=False
)
