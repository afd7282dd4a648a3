"""Measure how soon after a kill, under load, a cut has what was committed at that moment.

Each process is killed when all is well; the control measures the lag without a kill.
"""

import statistics
import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest

from tests.faults.bank.checks import checked
from tests.faults.bank.readers import recovered
from tests.faults.bank.walk import Walk
from tests.faults.conftest import written
from tests.faults.scenes.disturbances import DISTURBANCES, Disturb, is_possible, nothing
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(7200)]

TIMES: Final = 5
KILLS: Final[dict[str, Disturb]] = {
    "nothing": nothing,
    **{name: kill for name, kill in DISTURBANCES.items() if name.startswith("kill ")},
}


@pytest.fixture(scope="module")
def measured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walk]:
    """Yield one walk for all tests, with wal2lake's own Spark settings; print its summary."""
    with written(request, tmp_path_factory.mktemp("measured"), conf={}) as bank:
        bank.run("up", "--detach")
        bank.sync()
        walk = Walk(bank)
        yield walk
        sys.stdout.write(f"\n{walk.summary}\n")


def report_line(name: str, seconds: list[float]) -> str:
    return (
        f"| {name} | {len(seconds)} times | median {statistics.median(seconds):.1f} s "
        f"| maximum {max(seconds):.1f} s |"
    )


@pytest.mark.parametrize("name", KILLS)
def test_the_lake_follows_again_after_each_kill(measured: Walk, name: str) -> None:
    kill, bank = KILLS[name], measured.installation
    seconds: list[float] = []
    measured.note()
    with checked(bank, measured, seed=list(KILLS).index(name)) as check:
        recovered(bank)
        for _ in range(TIMES):
            until(partial(is_possible, bank, name))
            kill(bank)
            measured.kills += kill is not nothing
            seconds.append(recovered(bank))
    sys.stdout.write(
        f"\n{report_line(name, seconds)} {check.minutes:.0f} minutes, {check.reader.summary} |\n"
    )
