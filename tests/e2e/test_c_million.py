"""Test one transaction of a million rows: it arrives whole, without a restart.

It takes minutes, so it runs only with ``--deep``.
"""

import pytest

from tests.e2e.installation import Installation

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

ROWS = 1_000_000
SECONDS = "3000"


@pytest.mark.timeout(3600)
def test_a_transaction_of_a_million_rows_arrives_whole(installation: Installation) -> None:
    # 8: other tests have stopped tables
    assert installation.done("sync", "--timeout", "900").returncode in {0, 8}
    processes = {name: installation.pid(name) for name in ("job", "connect", "kafka")}
    before = installation.facts("status")["cut"]

    installation.execute(f"INSERT INTO bank.many SELECT i, i FROM generate_series(1, {ROWS}) i")
    done = installation.done("sync", "--timeout", SECONDS, seconds=float(SECONDS))

    assert done.returncode in {0, 8}, done.stderr
    counted = installation.lake_query("bank", "many", "SELECT count(*), sum(v) FROM t")
    assert list(counted) == [(ROWS, ROWS * (ROWS + 1) // 2)]
    [verdict] = [
        table
        for table in installation.any_facts("verify")["tables"]
        if table["table"] == "bank.many"
    ]
    assert verdict["equal"]
    assert {name: installation.pid(name) for name in processes} == processes
    assert installation.facts("status")["cut"] > before
