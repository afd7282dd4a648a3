"""Kill the job before and after each durable step: nothing is lost, doubled or half written."""

from collections.abc import Sequence

import pytest

from cdc.failpoints import Failpoint
from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES, at_work
from tests.faults.bank.marts import MARTS, assert_derived
from tests.faults.bank.walk import Walk, query
from tests.faults.bank.witness import witnessed
from tests.faults.scenes.running import Trigger
from tests.faults.scenes.steps import AT_THE_FIRST_START, CASES, nothing, points_of

pytestmark = pytest.mark.e2e

SAMPLE = (
    Failpoint.AFTER_LOG_APPEND,
    Failpoint.AFTER_TABLE_COMMIT,
    Failpoint.BEFORE_LEDGER_APPEND,
)
"""Combined in one test: each kill costs a start of Spark and each test a full ``verify``."""


def assert_nothing_is_lost(bank: Armed) -> None:
    """Compare by the independent reader and by ``verify``; no event is in the log twice."""
    bank.sync()
    bank.assert_equal(*TABLES)
    assert bank.facts("verify")["equal"]
    landed = query(
        bank, "_wal2lake/log", "SELECT topic, count(*) AS n FROM t GROUP BY topic, offset"
    )
    assert {row["n"] for row in landed} == {1}, "events have landed twice"


def kill_at(
    bank: Armed, walk: Walk, points: Sequence[Failpoint], *, by: Trigger, name: str
) -> None:
    """Kill the job at each of the points, under transactions and what ``by`` asks of the job."""

    def await_kills() -> None:
        for point in points:
            bank.await_kill(point)
            walk.kills += 1
            walk.note()

    walk.note()
    with at_work(bank, walk.commits, seed=list(Failpoint).index(points[0])):
        for point in points:
            bank.arm(point)
        by(bank, name, await_kills)


def test_nothing_is_lost_or_doubled_by_kills_in_a_round(bank: Armed, walk: Walk) -> None:
    with witnessed(bank) as witness:
        kill_at(bank, walk, SAMPLE, by=nothing, name="sample")

        assert_nothing_is_lost(bank)
        assert_derived(bank)
        assert witness.compare() > 0
    walk.go_on()
    assert walk.derived.names == set(MARTS)


@pytest.mark.deep
@pytest.mark.timeout(7200)  # the ledger is compacted after 32 rounds, and each kill costs a start
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost_or_doubled_by_kills_at_all_steps_of(
    bank: Armed, walk: Walk, case: str
) -> None:
    trigger, steps = CASES[case]
    kill_at(bank, walk, points_of(*steps), by=trigger, name=case.replace(" ", "_"))

    assert_nothing_is_lost(bank)
    assert_derived(bank)
    walk.go_on()


@pytest.mark.deep
@pytest.mark.parametrize("point", points_of(*AT_THE_FIRST_START))
def test_a_first_start_after_a_kill_succeeds(new: Armed, point: Failpoint) -> None:
    new.arm(point)
    new.done("up", "--detach")
    assert not new.is_armed(point)

    new.run("up", "--detach")

    assert_nothing_is_lost(new)
    Walk(new).go_on()
