"""A first snapshot is broken off while rows of it are there already; nothing is silently wrong.

The snapshot stands still at a table (``breaking.gated``), under transactions. Then a part is
killed, and rows that the broken attempt has read are deleted and changed before another can begin.
What is expected:

- The job is killed: the connector reads on, and all is equal by itself.
- The worker, Postgres or the connector's sessions end: the connector begins its snapshot again by
  itself. Each table of which both attempts have rows stops (``snapshot-repeated``), and
  ``resnapshot --stopped`` puts it right; no other may differ meanwhile.
- Kafka or the registry is killed: the connector outlives it, or as before.
- ``down``: the next ``up`` refuses (``snapshot-interrupted``) where some of it has landed, and a
  new epoch is the remedy; where nothing has, it begins again from nothing.

Where a start ends instead, or the job, its code and the remedy are what has to hold.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from cdc.errors import Reason
from cdc.events.values.lsn import parse_lsn
from tests.e2e.installation import Installation
from tests.faults.bank.armed import SYNC_SECONDS, Armed
from tests.faults.bank.bank import TABLES, at_work
from tests.faults.bank.readers import recovered
from tests.faults.bank.walk import Row, Unflagged
from tests.faults.conftest import written
from tests.faults.scenes.breaking import (
    BREAKS,
    CHANGES,
    EARLY,
    LATE,
    OURS,
    SQL,
    await_landed,
    await_sent,
    crowd,
    gated,
    landed,
    starting,
    steadily_at_work,
)
from tests.faults.scenes.corruptions import NEW_EPOCH
from tests.meanwhile import meanwhile
from tests.servers.fixtures import on_containers
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(5400)]

SETTLED_SECONDS: Final = 900
REMEDY_SECONDS: Final = 3000
CROWD_SECONDS: Final = 0.1
Case = tuple[str, str, Callable[[Armed], None]]
CASES: Final[dict[str, Case]] = {
    **{name: (name, EARLY, await_landed) for name in BREAKS},
    **{f"{name}, late": (name, LATE, await_landed) for name in ("kill connect", "down")},
    **{f"{name}, sent": (name, EARLY, await_sent) for name in ("kill connect", "down")},
}
"""What breaks it off, at which table, and what of the large one is there then.

Early: of the bank's tables only the second attempt has rows. Late: both have all of them.
"""


@pytest.fixture
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    if on_containers(request):
        pytest.skip("the parts are killed by their pids on this machine")
    with written(request, tmp_path) as found:
        found.execute(SQL)
        yield found


def stopped(bank: Armed) -> dict[str, str]:
    """The reasons, by table."""
    tables = bank.facts("status")["tables"]
    return {each["table"]: each["reason"] for each in tables if each["state"] == "stopped"}


def settled(bank: Armed, *, is_up: bool) -> list[str]:
    """Follows again, or has ended with a code; the commands that were the remedy."""
    if is_up:
        with bank.connect() as connection:
            row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        assert row is not None
        until(lambda: _is_settled(bank, int(row[0])), SETTLED_SECONDS)
        if not _has_failed(bank.any_facts("status")):
            return []
        bank.run("down")
    return started_again(bank)


def _is_settled(bank: Armed, upto: int) -> bool:
    said = bank.any_facts("status")
    return _has_failed(said) or (said["lsn"] is not None and parse_lsn(said["lsn"]) >= upto)


def _has_failed(said: Row) -> bool:
    return any(each["name"] == "job" and each["state"] == "failed" for each in said["servers"])


def started_again(bank: Armed) -> list[str]:
    """By a plain start, and where that refuses by what it says."""
    done = bank.done("up", "--detach")
    if done.returncode == 0:
        return ["up --detach"]
    code = re.search(r"error: \[([a-z-]+)\] ", done.stderr)
    assert done.returncode == 12, f"{done.stdout}\n{done.stderr}"
    assert code is not None, done.stderr
    assert "wal2lake up --new-epoch, then wal2lake resnapshot --all" in done.stderr
    for command in NEW_EPOCH:
        remedied = bank.done(*command.split(), seconds=REMEDY_SECONDS)
        assert remedied.returncode == 0, remedied.stderr
    return [f"[{code[1]}]", *NEW_EPOCH]


def remedied(bank: Armed) -> list[str]:
    """At rest: what the lake does not flag is equal, and what it does has a remedy that works."""
    done = bank.done("sync", "--timeout", SYNC_SECONDS)
    flagged = stopped(bank)
    assert done.returncode == (8 if flagged else 0), done.stderr
    tables = [name for name in (*TABLES, *OURS) if f"bank.{name}" not in flagged]
    Installation.assert_equal(bank, *tables)
    if not flagged:
        return []
    for reason in flagged.values():
        assert f"[{Reason.SNAPSHOT_REPEATED.value}] " in reason
        assert "wal2lake resnapshot" in reason.partition("remedy: ")[2]
    done = bank.done("resnapshot", "--stopped", seconds=REMEDY_SECONDS)
    assert done.returncode == 0, done.stderr
    return [f"resnapshot --stopped ({len(flagged)} tables)"]


def broken_off(bank: Armed, case: Case) -> tuple[bool, int]:
    """Whether it is up afterwards, and how many events of the large table had landed."""
    name, table, await_rows = case
    with starting(bank) as first:
        with gated(bank, table):
            await_rows(bank)
            there = landed(bank)
            BREAKS[name](bank)
            bank.execute(CHANGES)
        said, _ = first.communicate(timeout=SETTLED_SECONDS)
    if first.returncode:
        sys.stdout.write(f"\nthe first start: {said}\n")
    return first.returncode == 0 and name != "down", there


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_silently_wrong_behind_a_broken_first_snapshot(large: Armed, name: str) -> None:
    walk = Unflagged(large)
    with (
        steadily_at_work(large, walk.commits, seed=list(CASES).index(name)),
        meanwhile(lambda: crowd(large), every=CROWD_SECONDS),
    ):
        is_up, there = broken_off(large, CASES[name])
        commands = settled(large, is_up=is_up)
    commands += remedied(large)
    with at_work(large, walk.commits, seed=len(CASES)):
        recovered(large)
    large.sync()
    large.assert_equal(*TABLES, *OURS)
    assert large.facts("verify")["equal"]
    walk.go_on()
    assert walk.versions > 0

    did = ", then ".join(commands) or "nothing had to be done"
    sys.stdout.write(f"\n| {name} | {there} events had landed | {did} |\n")
