"""How long until a cut has what was committed when a process was killed, under load.

Each is killed when all is well; the control says how far the lake is behind when nothing is.
"""

import statistics
import sys
import time
from typing import Final

import pytest

from tests.faults.armed import Armed
from tests.faults.bank import TABLES, at_work
from tests.faults.disturbances import DISTURBANCES, Disturb
from tests.faults.readers import Reader, recovered
from tests.faults.walk import Walk
from tests.faults.witness import witnessed
from tests.meanwhile import meanwhile

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(7200)]

TIMES: Final = 5
LOOK_SECONDS: Final = 2.0


def nothing(_bank: Armed) -> None:
    """The control."""


KILLS: Final[dict[str, Disturb]] = {
    "nothing": nothing,
    **{name: kill for name, kill in DISTURBANCES.items() if not name.startswith("stop ")},
}


def told(name: str, seconds: list[float]) -> str:
    return (
        f"| {name} | {len(seconds)} times | median {statistics.median(seconds):.1f} s "
        f"| maximum {max(seconds):.1f} s |"
    )


def test_the_lake_follows_again_after_each_kill(bank: Armed, walk: Walk) -> None:
    reader, began = Reader(bank), time.monotonic()
    walk.note()
    with witnessed(bank) as witness:
        with at_work(bank, walk.commits, seed=1), meanwhile(reader.look, every=LOOK_SECONDS):
            for name, kill in KILLS.items():
                seconds = []
                for _ in range(TIMES):
                    recovered(bank)
                    kill(bank)
                    seconds.append(recovered(bank))
                sys.stdout.write(f"\n{told(name, seconds)}")
                sys.stdout.flush()
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        events = witness.compare()
    walk.kills += TIMES * (len(KILLS) - 1)
    walk.go_on()
    assert events > 0
    minutes = (time.monotonic() - began) / 60
    sys.stdout.write(f"\n{minutes:.0f} minutes, {reader.told}, {walk.told}\n")
