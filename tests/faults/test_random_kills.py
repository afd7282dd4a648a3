"""All parts are killed or stopped at random; a reader sees whole transactions only."""

import os
import random
import statistics
import sys
import threading
import time
from typing import Final

import pytest

from tests.faults.armed import Armed
from tests.faults.bank import TABLES, at_work
from tests.faults.disturbances import DISTURBANCES
from tests.faults.readers import Reader, recovered
from tests.faults.walk import Walk
from tests.faults.witness import witnessed
from tests.meanwhile import meanwhile

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(0)]

QUIET_SECONDS: Final = 6.0  # at most, between a recovery and the next disturbance
LOOK_SECONDS: Final = 0.2


def told(seconds: dict[str, list[float]]) -> str:
    lines = [
        f"  {name}: {len(found)} times, median {statistics.median(found):.1f} s, "
        f"maximum {max(found):.1f} s"
        for name, found in sorted(seconds.items())
    ]
    return "\n".join(["from the end of it to a cut with what was committed then:", *lines])


def test_a_reader_sees_whole_transactions_through_random_kills(
    bank: Armed, walk: Walk, pytestconfig: pytest.Config
) -> None:
    asked = pytestconfig.getoption("--seed")
    seed = int.from_bytes(os.urandom(4)) if asked is None else asked
    sys.stdout.write(f"\nseed {seed}: --seed {seed} does the same again\n")
    chance, pause, reader = random.Random(seed), threading.Event(), Reader(bank)
    seconds, began = dict[str, list[float]](), time.monotonic()
    walk.note()

    with witnessed(bank) as witness:
        with at_work(bank, walk.commits, seed=seed), meanwhile(reader.look, every=LOOK_SECONDS):
            for _ in range(pytestconfig.getoption("--kills")):
                name = chance.choice(sorted(DISTURBANCES))
                pause.wait(chance.uniform(0, QUIET_SECONDS))
                DISTURBANCES[name](bank)
                walk.kills += 1
                seconds.setdefault(name, []).append(recovered(bank))
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        events = witness.compare()
    walk.go_on()
    assert reader.reads > 0
    assert events > 0
    minutes = (time.monotonic() - began) / 60
    sys.stdout.write(
        f"{told(seconds)}\n"
        f"{minutes:.0f} minutes, {reader.reads} reads of the newest cut, {walk.told}\n"
        f"{events} events in the log as a second slot has them\n"
    )
