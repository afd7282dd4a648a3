"""Each check under each scenario: what the bank promises holds before, during and after it.

A scenario lies between two phases of work. The checks, all of them in each: the bank's total, marks
in three tables, counters that never fall, rows deleted and inserted again, large values left out,
at every version of every cut; the log event for event as a second slot has it; at rest each table
as Postgres and a second reader have it, and ``verify``.
"""

import sys
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.faults.bank import TABLES, at_work
from tests.faults.readers import Reader, recovered
from tests.faults.scenarios import SCENARIOS
from tests.faults.scene import Scene, staged
from tests.faults.witness import witnessed
from tests.meanwhile import meanwhile
from tests.servers.fixtures import on_containers

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]

LOOK_SECONDS: Final = 0.5


@pytest.fixture(scope="module")
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    if on_containers(request):
        pytest.skip("processes are stopped, and disks filled, on this machine")
    with staged(request, tmp_path_factory.mktemp("scene")) as found:
        yield found


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_check_holds(scene: Scene, name: str) -> None:
    bank, walk, reader, began = scene.bank, scene.walk, Reader(scene.bank), time.monotonic()
    before, seed = walk.versions, list(SCENARIOS).index(name)
    with witnessed(bank) as witness:
        with at_work(bank, walk.commits, seed=seed), meanwhile(reader.look, every=LOOK_SECONDS):
            recovered(bank)
            SCENARIOS[name](scene)
            seconds = recovered(bank)
        bank.sync()
        bank.assert_equal(*TABLES)
        assert bank.facts("verify")["equal"]
        events = witness.compare()
    walk.go_on()

    assert events > 0
    assert reader.reads > 0
    sys.stdout.write(
        f"\n| {name} | {(time.monotonic() - began) / 60:.1f} min | caught up in {seconds:.1f} s "
        f"| {events} events | {walk.versions - before} versions | {reader.reads} reads |\n"
    )
