"""Break off a first snapshot when some of its rows have arrived; nothing may be silently wrong.

The snapshot waits at a table (``breaking.gated``), under transactions. Then a part is killed, and
rows that the broken attempt has read are deleted and changed before another attempt can begin.
Expected:

- The job is killed: the connector reads on, and all is equal by itself.
- The worker, Postgres or the connector's sessions end: the connector begins its snapshot again by
  itself. Each table of which both attempts have rows stops (``snapshot-repeated``), and
  ``resnapshot --stopped`` puts it right; no other may differ meanwhile.
- Kafka or the registry is killed: the connector survives, or begins again as above.
- ``down``: if rows have landed, the next ``up`` refuses (``snapshot-interrupted``) and the remedy
  is a new epoch; if none have, the snapshot begins again from nothing.

If a start or the job fails instead, its reason code and remedy are checked.
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
    by_the_connector,
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
"""How the snapshot is broken off, at which table, and how far the large table's rows must be.

At the early table only the second attempt has rows of the bank; at the late one both have all.
"""


@pytest.fixture
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    if on_containers(request):
        pytest.skip("the parts are killed by their pids on this machine")
    with written(request, tmp_path) as found:
        found.execute(SQL)
        found.configure(by_the_connector)
        yield found


def stopped(bank: Armed) -> dict[str, str]:
    """Return the reasons of the stopped tables, by table."""
    tables = bank.facts("status")["tables"]
    return {entry["table"]: entry["reason"] for entry in tables if entry["state"] == "stopped"}


def settled(bank: Armed, *, is_up: bool) -> list[str]:
    """Wait until the pipeline has caught up or failed; return the commands that repaired it."""
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
    status = bank.any_facts("status")
    lsn = status["lsn"]
    return _has_failed(status) or (lsn is not None and parse_lsn(lsn) >= upto)


def _has_failed(status: Row) -> bool:
    servers = status["servers"]
    return any(server["name"] == "job" and server["state"] == "failed" for server in servers)


def started_again(bank: Armed) -> list[str]:
    """Start again, with the printed remedy if a plain start is refused; return the commands."""
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
    """Assert that unflagged tables are equal; repair flagged ones by their remedy. Return it."""
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
    """Break off the snapshot; return whether all is up, and the large table's landed events."""
    name, table, await_rows = case
    with starting(bank) as first:
        with gated(bank, table):
            await_rows(bank)
            there = landed(bank)
            BREAKS[name](bank)
            bank.execute(CHANGES)
        output, _ = first.communicate(timeout=SETTLED_SECONDS)
    if first.returncode:
        sys.stdout.write(f"\nthe first start: {output}\n")
    return first.returncode == 0 and name != "down", there


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_silently_wrong_after_a_broken_first_snapshot(large: Armed, name: str) -> None:
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
