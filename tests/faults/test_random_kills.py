"""Kill or suspend parts at random, even while they are still restarting from the last kill.

A reader only ever sees whole transactions, and afterwards nothing is lost or doubled.
"""

import statistics
import sys
import threading
from functools import partial
from typing import Final

import pytest

from tests.faults.bank.armed import Armed
from tests.faults.bank.checks import checked
from tests.faults.bank.readers import recovered
from tests.faults.bank.walk import Walk
from tests.faults.scenes.disturbances import DISTURBANCES, KILLS, drawn, is_possible
from tests.seeds import seed_of
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(0)]

QUIET_SECONDS: Final = 6.0  # at most, between two disturbances
EVERY: Final = 10
"""After this many the test waits for recovery; the others come before it."""


def test_a_reader_sees_whole_transactions_through_random_kills(
    bank: Armed, walk: Walk, pytestconfig: pytest.Config
) -> None:
    seed, kills = seed_of(pytestconfig), pytestconfig.getoption("--kills")
    sys.stdout.write(f"\nseed {seed}: --seed {seed} does the same again\n")
    todo = list(drawn(seed, kills, QUIET_SECONDS))
    pause, seconds = threading.Event(), list[float]()
    walk.note()
    with checked(bank, walk, seed=seed) as check:
        for number, (quiet, name) in enumerate(todo, start=1):
            pause.wait(quiet)  # the quiet time is part of the random schedule
            until(partial(is_possible, bank, name))
            DISTURBANCES[name](bank)
            walk.kills += name in KILLS
            if number % EVERY == 0:
                seconds.append(recovered(bank))
                sys.stdout.write(f"after {number}: all is well in {seconds[-1]:.1f} s\n")
                sys.stdout.flush()
                check.went_well()
        seconds.append(recovered(bank))
    sys.stdout.write(
        f"all was well again: median {statistics.median(seconds):.1f} s, "
        f"maximum {max(seconds):.1f} s\n"
        f"{check.minutes:.0f} minutes, {check.reader.summary}, {walk.summary}\n"
        f"{len(todo) - kills} other disturbances\n"
        f"{check.events} events in the log as a second slot has them\n"
    )
