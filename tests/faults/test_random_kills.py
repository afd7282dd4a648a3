"""All parts are killed or stopped at random, also while they start again from the last time.

A reader sees whole transactions only, and afterwards nothing is lost or doubled.
"""

import os
import random
import statistics
import sys
import threading
import time
from functools import partial
from typing import Final

import pytest

from tests.faults.armed import Armed
from tests.faults.bank import TABLES, at_work
from tests.faults.disturbances import DISTURBANCES, PROCESSES
from tests.faults.readers import Reader, recovered
from tests.faults.walk import Walk
from tests.faults.witness import witnessed
from tests.meanwhile import meanwhile
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(0)]

QUIET_SECONDS: Final = 6.0  # at most, between two disturbances
EVERY: Final = 10
"""After so many it is waited for that all is well: the others come while it is not."""
LOOK_SECONDS: Final = 2.0


def is_possible(bank: Armed, name: str) -> bool:
    """A process that is down can be neither killed nor stopped."""
    part = name.rpartition(" ")[2]
    return part not in PROCESSES or bank.process(part) is not None


def test_a_reader_sees_whole_transactions_through_random_kills(
    bank: Armed, walk: Walk, pytestconfig: pytest.Config
) -> None:
    asked = pytestconfig.getoption("--seed")
    seed = int.from_bytes(os.urandom(4)) if asked is None else asked
    sys.stdout.write(f"\nseed {seed}: --seed {seed} does the same again\n")
    chance, pause, reader = random.Random(seed), threading.Event(), Reader(bank)
    seconds, began = list[float](), time.monotonic()
    kills = pytestconfig.getoption("--kills")
    walk.note()

    with witnessed(bank) as witness:
        with at_work(bank, walk.commits, seed=seed), meanwhile(reader.look, every=LOOK_SECONDS):
            for number in range(1, kills + 1):
                pause.wait(chance.uniform(0, QUIET_SECONDS))
                name = chance.choice(sorted(DISTURBANCES))
                until(partial(is_possible, bank, name))
                DISTURBANCES[name](bank)
                walk.kills += 1
                if number % EVERY == 0 or number == kills:
                    seconds.append(recovered(bank))
                    sys.stdout.write(f"after {number}: all is well in {seconds[-1]:.1f} s\n")
                    sys.stdout.flush()
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        events = witness.compare()
    walk.go_on()
    assert reader.cuts > 1
    assert events > 0
    minutes = (time.monotonic() - began) / 60
    sys.stdout.write(
        f"all was well again: median {statistics.median(seconds):.1f} s, "
        f"maximum {max(seconds):.1f} s\n"
        f"{minutes:.0f} minutes, {reader.told}, {walk.told}\n"
        f"{events} events in the log as a second slot has them\n"
    )
