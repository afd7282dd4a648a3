"""Runs the benchmark of derived tables: its four parts, one after the other."""

import logging
from collections.abc import Iterator
from typing import Final

import structlog

from bench.core.figure import NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.derived import catch_up, checked, queries, ten
from bench.derived.names import DERIVED as NAME
from bench.run import outcomes_of

PARTS: Final = (
    Benchmark(name=NAME, title="a check of fifty files", measure=checked.measure),
    Benchmark(name=NAME, title="ten tables in a running job", measure=ten.measure),
    Benchmark(name=NAME, title="a step of each query", measure=queries.measure),
    Benchmark(name=NAME, title="a million events in one step", measure=catch_up.measure),
)


def measure(room: Room) -> Iterator[Outcome]:
    """Yield what each part yields; one that fails does not stop the others."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for part in PARTS:
        if room.has_time():
            room.say(part.title)
            yield from outcomes_of(part, room)
        else:
            yield NotMeasured(name=part.title, why="the run's time was over")


DERIVED: Final = Benchmark(
    name=NAME,
    title="derived tables: steps, a round with ten of them, catching up",
    measure=measure,
    in_quick=False,
    section=NAME,
)
