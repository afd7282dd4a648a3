"""The checks of every scenario, whatever it does and wherever the servers run.

Each scenario runs under load, between two phases of undisturbed work, and gets all checks. At every
version of every cut: the bank's total, marks in three tables, counters that never fall, rows that
are deleted and inserted again, large values that events leave out. The log must equal a second slot
event for event. At rest every table must equal Postgres by a second reader and by ``verify``, and
the source must calculate the same derived tables. Each published version of these is calculated
again by plain DuckDB (``recomputed.py``).
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES
from tests.faults.bank.marts import MARTS, assert_derived
from tests.faults.bank.readers import RECOVERY_SECONDS, Reader, recovered
from tests.faults.bank.restructured import restructured_at_work
from tests.faults.bank.walk import Walk
from tests.faults.bank.witness import witnessed
from tests.faults.scenes.scene import Scene
from tests.meanwhile import meanwhile
from tests.waiting import until

LOOK_SECONDS: Final = 2.0
Scenario = Callable[[Scene], None]


@dataclass
class Checked:
    """What the checks have looked at."""

    reader: Reader
    events: int = 0
    """Events in the log that equal those of a second slot; known at the end of the block."""
    went_well: Callable[[], None] = lambda: None
    """Raises the reader's first error, so that a long block can end early."""
    _began: float = field(default_factory=time.monotonic)

    @property
    def minutes(self) -> float:
        """The minutes since the checks began."""
        return (time.monotonic() - self._began) / 60


@contextmanager
def checked(bank: Armed, walk: Walk, *, seed: int) -> Iterator[Checked]:
    """Run and read the bank during the block; judge everything published after it."""
    check = Checked(Reader(bank))
    look = check.reader.look
    with witnessed(bank) as witness:
        working = restructured_at_work(bank, walk.commits, seed=seed)
        with working, meanwhile(look, every=LOOK_SECONDS) as check.went_well:
            yield check
            # The cuts come faster than they are read: without two of them nothing was compared.
            until(lambda: check.reader.cuts > 1, RECOVERY_SECONDS)
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        assert_derived(bank)
        check.events = witness.compare()
    walk.go_on()
    assert walk.derived.names == set(MARTS)
    assert check.events > 0
    assert check.reader.cuts > 1


def every_check(scene: Scene, name: str, scenario: Scenario, *, seed: int) -> None:
    """Assert the bank's promises before, during and after the scenario; print the figures."""
    bank, walk, before = scene.bank, scene.walk, scene.walk.versions
    with checked(bank, walk, seed=seed) as check:
        recovered(bank)
        scenario(scene)
        seconds = recovered(bank)
    sys.stdout.write(
        f"\n| {name} | {check.minutes:.1f} min | caught up in {seconds:.1f} s "
        f"| {check.events} events | {walk.versions - before} versions | {check.reader.summary} |\n"
    )
