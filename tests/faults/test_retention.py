"""Expire the log and the ledger: both stay small, and the past they keep can be replayed.

The job is killed before and after each step. The load lasts for several retention periods.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from deltalake import DeltaTable

from cdc.lake.table.positions import LandedPosition, landed_position
from tests.e2e.installation import Installation
from tests.faults.bank.armed import NAME, Armed
from tests.faults.bank.bank import TOTAL, at_work
from tests.faults.bank.walk import queried, query
from tests.faults.conftest import written
from tests.faults.scenes.corruptions import TABLES
from tests.faults.scenes.steps import EXPIRY, points_of
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]

RETENTION_SECONDS: Final = 60
VERSIONS_SECONDS: Final = 150  # an image is compared with the table version it was made from
LONG_SECONDS: Final = 900
KEYED: Final = "bank.accounts"


@pytest.fixture(scope="module")
def short(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Armed]:
    policy = {
        "log_retention_hours": RETENTION_SECONDS / 3600,
        "vacuum_retention_hours": VERSIONS_SECONDS / 3600,
        "vacuum_every_hours": RETENTION_SECONDS / 3600,
    }
    patterns = [f"bank.{table}" for table in TABLES]
    with written(request, tmp_path_factory.mktemp("short"), patterns) as bank:
        bank.configure(lambda found: found["job"].update(policy))
        bank.run("up", "--detach")
        bank.sync()
        yield bank


def landed(bank: Armed) -> LandedPosition:
    position = landed_position(str(bank.folder / "lake/_wal2lake/log"))
    assert position is not None
    return position


def oldest_cut(bank: Armed) -> int:
    (row,) = query(bank, "_wal2lake/ledger", "SELECT min(cut) AS cut FROM t")
    return int(row["cut"])


def first_landing(bank: Armed, table: str) -> int:
    """Return the first landing of a table that is still in the log."""
    topic = f"{NAME}.{table}"
    text = f"SELECT min(landing) AS landing FROM t WHERE topic = '{topic}'"
    (row,) = query(bank, "_wal2lake/log", text)
    return int(row["landing"] or landed(bank).landing + 1)


def replayed(bank: Armed, to: int) -> dict[str, list[dict[str, Any]]]:
    """Replay every table into a separate path as of a cut; return the rows, by table."""
    rows = {}
    for table in TABLES:
        path = str(bank.folder / f"{table}-at-{to}")
        bank.run("replay", f"bank.{table}", "--into", path, "--to", str(to))
        rows[table] = queried(DeltaTable(path), "SELECT * FROM t")
    return rows


def test_the_log_keeps_what_the_remaining_cuts_need(short: Armed) -> None:
    points = points_of(*EXPIRY)
    with at_work(short, {}, seed=8):
        for point in points:
            short.arm(point)
        for point in points:
            short.await_kill(point)
        ended = landed(short).landing
        until(lambda: first_landing(short, KEYED) > ended, LONG_SECONDS)
    short.configure(lambda found: found["job"].pop("log_retention_hours"))
    short.crash("job")
    short.sync()

    assert oldest_cut(short) > 1
    Installation.assert_equal(short, *TABLES)
    assert short.facts("verify")["equal"]
    assert {f"{NAME}.bank.{table}" for table in ("accounts", "visits")} <= set(
        landed(short).expired
    )
    output = short.run("replay", KEYED, "--into", "nowhere", "--to", "1", expect=2)
    assert f"the oldest that is kept is {oldest_cut(short)}" in output
    then = replayed(short, oldest_cut(short))
    assert sum(row["balance"] for row in then["accounts"]) == TOTAL
    assert 0 < sum(row["n"] for row in then["counters"]) < marks(short)
    short.run("rebuild", "--all")
    short.sync()
    Installation.assert_equal(short, *TABLES)
    assert short.facts("verify")["equal"]


def marks(bank: Armed) -> int:
    """Return the number of transactions: each has increased one counter by one."""
    with bank.connect() as connection:
        row = connection.execute("SELECT sum(n) FROM bank.counters").fetchone()
    assert row is not None
    return int(row[0])
