"""What is checked of every scenario, whatever it does and wherever the servers run.

A scenario lies between two phases of work. The checks, all of them in each: the bank's total, marks
in three tables, counters that never fall, rows deleted and inserted again, large values left out,
at every version of every cut; the log event for event as a second slot has it; at rest each table
as Postgres and a second reader have it, and ``verify``.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES
from tests.faults.bank.readers import Reader, recovered
from tests.faults.bank.restructured import restructured_at_work
from tests.faults.bank.walk import Walk
from tests.faults.bank.witness import witnessed
from tests.faults.scenes.scene import Scene
from tests.meanwhile import meanwhile

LOOK_SECONDS: Final = 2.0
Scenario = Callable[[Scene], None]


@dataclass
class Checked:
    """What was looked at."""

    reader: Reader
    events: int = 0
    """In the log, as a second slot has them; known at the end of the block."""
    went_well: Callable[[], None] = lambda: None
    """Raises what the reader has found wrong, for a block that is long."""
    _began: float = field(default_factory=time.monotonic)

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self._began) / 60


@contextmanager
def checked(bank: Armed, walk: Walk, *, seed: int) -> Iterator[Checked]:
    """The bank is at work and read in the block; after it all is judged that was published."""
    found = Checked(Reader(bank))
    look = found.reader.look
    with witnessed(bank) as witness:
        working = restructured_at_work(bank, walk.commits, seed=seed)
        with working, meanwhile(look, every=LOOK_SECONDS) as found.went_well:
            yield found
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        found.events = witness.compare()
    walk.go_on()
    assert found.events > 0
    assert found.reader.cuts > 1


def every_check(scene: Scene, name: str, scenario: Scenario, *, seed: int) -> None:
    """What the bank promises holds before, during and after the scenario; prints what it took."""
    bank, walk, before = scene.bank, scene.walk, scene.walk.versions
    with checked(bank, walk, seed=seed) as found:
        recovered(bank)
        scenario(scene)
        seconds = recovered(bank)
    sys.stdout.write(
        f"\n| {name} | {found.minutes:.1f} min | caught up in {seconds:.1f} s "
        f"| {found.events} events | {walk.versions - before} versions | {found.reader.told} |\n"
    )
