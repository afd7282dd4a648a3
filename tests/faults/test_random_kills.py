"""All parts are killed at random, also while they start again from the last time; some only stop.

A reader sees whole transactions only, and afterwards nothing is lost or doubled.
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
"""After so many it is waited for that all is well: the others come while it is not."""


def test_a_reader_sees_whole_transactions_through_random_kills(
    bank: Armed, walk: Walk, pytestconfig: pytest.Config
) -> None:
    seed, kills = seed_of(pytestconfig), pytestconfig.getoption("--kills")
    sys.stdout.write(f"\nseed {seed}: --seed {seed} does the same again\n")
    todo = list(drawn(seed, kills, QUIET_SECONDS))
    pause, seconds = threading.Event(), list[float]()
    walk.note()
    with checked(bank, walk, seed=seed) as found:
        for number, (quiet, name) in enumerate(todo, start=1):
            pause.wait(quiet)
            until(partial(is_possible, bank, name))
            DISTURBANCES[name](bank)
            walk.kills += name in KILLS
            if number % EVERY == 0:
                seconds.append(recovered(bank))
                sys.stdout.write(f"after {number}: all is well in {seconds[-1]:.1f} s\n")
                sys.stdout.flush()
                found.went_well()
        seconds.append(recovered(bank))
    sys.stdout.write(
        f"all was well again: median {statistics.median(seconds):.1f} s, "
        f"maximum {max(seconds):.1f} s\n"
        f"{found.minutes:.0f} minutes, {found.reader.told}, {walk.told}\n"
        f"{len(todo) - kills} other disturbances\n"
        f"{found.events} events in the log as a second slot has them\n"
    )
