"""What is checked of every scenario, whatever it does and wherever the servers run.

A scenario lies between two phases of work. The checks, all of them in each: the bank's total, marks
in three tables, counters that never fall, rows deleted and inserted again, large values left out,
at every version of every cut; the log event for event as a second slot has it; at rest each table
as Postgres and a second reader have it, and ``verify``.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

from tests.faults.bank import TABLES, at_work
from tests.faults.readers import Reader, recovered
from tests.faults.scene import Scene
from tests.faults.witness import witnessed
from tests.meanwhile import meanwhile

LOOK_SECONDS: Final = 2.0
Scenario = Callable[[Scene], None]


def every_check(scene: Scene, name: str, scenario: Scenario, *, seed: int) -> None:
    """What the bank promises holds before, during and after the scenario; prints what it took."""
    bank, walk, reader, began = scene.bank, scene.walk, Reader(scene.bank), time.monotonic()
    before = walk.versions
    with witnessed(bank) as witness:
        with at_work(bank, walk.commits, seed=seed), meanwhile(reader.look, every=LOOK_SECONDS):
            recovered(bank)
            scenario(scene)
            seconds = recovered(bank)
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        events = witness.compare()
    walk.go_on()

    assert events > 0
    assert reader.cuts > 1
    sys.stdout.write(
        f"\n| {name} | {(time.monotonic() - began) / 60:.1f} min | caught up in {seconds:.1f} s "
        f"| {events} events | {walk.versions - before} versions | {reader.told} |\n"
    )
