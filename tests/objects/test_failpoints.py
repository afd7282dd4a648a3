"""Kill a job whose lake is in an object store before and after each durable step.

The store fails now and then meanwhile. What is judged, and by what, is as on a local disk
(``tests/faults``): Postgres, a second slot's log, every version of every cut.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from tests.faults.bank.armed import Armed, job_of
from tests.faults.bank.bank import SQL
from tests.faults.bank.marts import assert_derived, define
from tests.faults.bank.walk import Walk
from tests.faults.scenes.steps import CASES, points_of
from tests.faults.test_every_failpoint import assert_nothing_is_lost, kill_at
from tests.local_spark import QUICK
from tests.objects.server import ObjectServer
from tests.objects.test_pipeline import FAILING
from tests.servers.fixtures import started

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(7200)]

ON_A_DISK: Final = frozenset({"broken", "forgotten", "rewritten"})
"""The first damages files by hand; ``wal2lake forget`` refuses a lake in an object store."""


class Stored(Armed):
    """An installation with failpoints whose lake is in an object store."""

    @property
    def lake(self) -> str:
        """Return the lake's path."""
        return self.lake_place


@pytest.fixture(scope="module")
def bank(
    request: pytest.FixtureRequest, running: ObjectServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Armed]:
    root = tmp_path_factory.mktemp("stored")
    with started(request, root / "servers", ("postgres",)) as servers:
        made = Stored.of(
            root / "lakehouse",
            servers["postgres"],
            ["bank.*", "gone.*"],
            job=job_of(request.config),
        )
        bank = replace(made, lake_place=running.lake())
        bank.configure(lambda written: written["spark"].update(conf=dict(QUICK)))
        bank.configure(lambda written: written.update(lake={"path": bank.lake}))
        bank.execute(SQL)
        define(bank)
        running.faults.follow(FAILING)
        bank.run("up", "--detach")
        try:
            bank.sync()
            yield bank
        finally:
            running.faults.heal()
            bank.run("down")
            assert bank.processes() == []


@pytest.fixture(scope="module")
def walk(bank: Armed) -> Iterator[Walk]:
    one = Walk(bank)
    yield one
    sys.stdout.write(f"\n{one.summary}\n")


@pytest.mark.parametrize("case", [case for case in CASES if case not in ON_A_DISK])
def test_nothing_is_lost_or_doubled_by_kills_at_all_steps_of(
    bank: Armed, walk: Walk, case: str
) -> None:
    trigger, steps = CASES[case]
    kill_at(bank, walk, points_of(*steps), by=trigger, name=f"s_{case.replace(' ', '_')}")

    assert_nothing_is_lost(bank)
    assert_derived(bank)
    walk.go_on()
