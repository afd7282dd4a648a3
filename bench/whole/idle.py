"""What an installation costs while nothing changes."""

import time
from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure
from bench.core.process_tree import Sampler
from bench.core.room import Room
from bench.whole.installation import Installation

SETTLE_SECONDS: Final = 10.0
"""After a load, so that what it leaves to do is done."""


def idle(room: Room, one: Installation, tables: int) -> Iterator[Figure]:
    """Yield the share of one core that each process takes."""
    time.sleep(SETTLE_SECONDS)
    with Sampler(pids=one.pids()) as sampler:
        time.sleep(room.sizes.idle_seconds)
    for name, seconds in sampler.cpu_seconds.items():
        yield Figure(
            name="idle",
            way=name,
            unit="of a core",
            samples=(seconds / sampler.seconds,),
            parameters={"tables": tables},
        )
