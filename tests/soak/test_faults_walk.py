"""Random faults, operations and changes on one installation; the bank's promises must hold.

.venv/bin/pytest tests/soak/test_faults_walk.py -m soak -s --minutes 30 --seed 1

After each step the test waits until a cut holds what was committed. Every few steps and at the end
it judges every version of every cut, before it is old enough to be removed. At the end source and
lake are equal, the log equals a second slot, and the tables have no more files than the
configuration allows. Derived tables are defined and redefined at random, and calculated again by
the source and by Spark at some cuts and at the end. The figures are printed by quarter of the run.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import pytest

from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from tests.faults.bank.armed import JOB, SYNC_SECONDS
from tests.faults.bank.marts import MARTS, assert_agreed
from tests.faults.bank.readers import Reader, recovered
from tests.faults.bank.witness import witnessed
from tests.faults.scenes.scene import DISKS, Scene, staged
from tests.meanwhile import meanwhile
from tests.seeds import seed_of
from tests.servers.fixtures import on_containers
from tests.soak import own_tables
from tests.soak.acting import OTHER_COMMITS, Work, act, compare
from tests.soak.flatness import judged, report, too_many
from tests.soak.sampler import Sampler
from tests.soak.steps import Step, steps

pytestmark = pytest.mark.soak

LOOK_SECONDS: Final = 2.0
SAMPLER_SECONDS: Final = 1.0
WALK_EVERY: Final = 2  # steps
KEPT_SECONDS: Final = 720.0
"""Much less than the walk lasts, so that kept files stay constant; longer than two steps."""
JOB_OF_THE_WALK: Final = {
    **JOB,
    "maintain_every_commits": 4,
    "vacuum_every_hours": 1 / 15,
    "vacuum_retention_hours": KEPT_SECONDS / 3600,
}
POLICY: Final = Job.model_validate(JOB_OF_THE_WALK)
SPARK: Final = ("--engine", "spark")
LAKE: Final = "3g"
"""The lake's disk: what twelve minutes write and the next vacuum removes."""


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    if on_containers(request):
        pytest.skip("needs processes and disks of this machine")
    folder = tmp_path_factory.mktemp("soak")
    with staged(request, folder, {**DISKS, "lake": LAKE}, JOB_OF_THE_WALK) as staged_scene:
        staged_scene.bank.execute(own_tables.SQL)
        staged_scene.bank.run("apply-config", "--timeout", SYNC_SECONDS)
        yield staged_scene


@dataclass
class Beside:
    """An action repeated during all steps; its first failure ends the walk."""

    act: Callable[[], None]
    failed: bool = False

    def __call__(self) -> None:
        try:
            self.act()
        except BaseException:
            self.failed = True
            raise


def test_the_bank_keeps_its_promises_through_a_walk_of_faults(
    scene: Scene, pytestconfig: pytest.Config
) -> None:
    seed, minutes = seed_of(pytestconfig), pytestconfig.getoption("--minutes")
    _say(f"\nseed {seed}, {minutes:g} minutes: --seed {seed} repeats the steps\n")
    reader, sampler = Reader(scene.bank), Sampler(scene.bank)
    scene.walk.note()
    with witnessed(scene.bank) as witness, _reported(sampler):
        done = _walk(scene, seed, minutes, [lambda: _look(reader), sampler.look], sampler)
        compare(scene.bank)
        sampler.take()
        assert scene.bank.facts("verify")["equal"]
        _say(f"derived tables that Spark cannot say: {assert_agreed(scene.bank, *SPARK)}\n")
        events = witness.compare()
    scene.walk.go_on()
    counted = judged(sampler.samples, POLICY)
    _say(
        f"{done} steps, {reader.summary}, {scene.walk.summary}, {events} events equal to a "
        f"second slot, {sampler.lives} starts of the job, {counted} bounded counts of files\n"
    )
    assert list(too_many(sampler.samples, POLICY)) == []
    assert reader.cuts > 1
    assert scene.walk.derived.names == set(MARTS)
    assert events > 0


@contextmanager
def _reported(sampler: Sampler) -> Iterator[None]:
    """Print the samples even if the walk failed: they are useful all the same."""
    try:
        yield
    finally:
        _say(f"\n{report(sampler.samples)}\n")


def _walk(
    scene: Scene,
    seed: int,
    minutes: float,
    looks: list[Callable[[], None]],
    sampler: Sampler,
) -> int:
    """Take steps until the time is over; return how many."""
    end, done = time.monotonic() + minutes * 60, 0
    beside = [Beside(look) for look in looks]
    with Work(scene, seed=seed) as work, ExitStack() as stack:
        for action, every in zip(beside, (LOOK_SECONDS, SAMPLER_SECONDS), strict=True):
            stack.enter_context(meanwhile(action, every=every))
        for step in takewhile(lambda _: time.monotonic() < end, steps(seed)):
            _take(step, scene, work, sampler)
            done = step.number
            if any(action.failed for action in beside):
                break
    return done


def _take(step: Step, scene: Scene, work: Work, sampler: Sampler) -> None:
    began = time.monotonic()
    _say(step.text)
    with sampler.other_commits() if step.kind in OTHER_COMMITS else nullcontext():
        act(step, scene, work)
        seconds = time.monotonic() - began
        _say(f" {seconds:.1f} s")
        _say(f", caught up in {recovered(scene.bank):.1f} s\n")
    scene.walk.kills += step.name.startswith("kill")
    if step.number % WALK_EVERY == 0:
        with work.resting():
            scene.walk.go_on()
            _say(f"{scene.walk.summary}\n")


def _look(reader: Reader) -> None:
    """Look at all tables, but later if an operation has one stopped."""
    try:
        reader.look()
    except CdcError as error:
        if error.kind is not ErrorKind.TABLE_STOPPED:
            raise


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
