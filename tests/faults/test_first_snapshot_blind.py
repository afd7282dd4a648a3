"""Truncate or rewrite tables during the first snapshot, which then sees none of their rows.

Neither keeps old row versions in Postgres: an earlier snapshot reads the table's new file and finds
no row in it that is old enough.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

from cdc.errors import Reason
from tests.e2e.installation import Installation
from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES, at_work
from tests.faults.bank.walk import Unflagged, queried, query
from tests.faults.conftest import written
from tests.faults.scenes.breaking import (
    EARLY,
    OURS,
    SQL,
    await_landed,
    by_the_connector,
    gated,
    starting,
)
from tests.servers.fixtures import on_containers

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]

START_SECONDS: Final = 900
REWRITTEN: Final = "late"
MORE: Final = f"""
CREATE TABLE bank.{REWRITTEN} (id int PRIMARY KEY, n int);
INSERT INTO bank.{REWRITTEN} SELECT i, i FROM generate_series(1, 500) i;
"""
REWRITE: Final = f"""
DELETE FROM bank.{REWRITTEN} WHERE id <= 10;
ALTER TABLE bank.{REWRITTEN} ALTER n TYPE bigint;
UPDATE bank.{REWRITTEN} SET n = n + 1 WHERE id <= 20;
"""


@pytest.fixture
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    if on_containers(request):
        pytest.skip("the job is killed by its pid on this machine")
    with written(request, tmp_path) as found:
        found.execute(SQL)
        found.execute(MORE)
        found.configure(by_the_connector)
        yield found


def reason(bank: Armed, table: str) -> str:
    tables = bank.facts("status")["tables"]
    (entry,) = [item for item in tables if item["table"] == table]
    return str(entry["reason"])


def emptied_rows(bank: Armed) -> set[tuple[str, int]]:
    """Return the states and row counts of ``bank.emptied`` at the cuts with an LSN."""
    states = set()
    text = "SELECT tables FROM t WHERE lsn IS NOT NULL"
    for row in query(bank, "_wal2lake/ledger", text):
        (entry,) = [item for item in row["tables"] if item["table"] == "bank.emptied"]
        opened = DeltaTable(entry["path"], version=entry["version"])
        states.add((entry["state"], len(queried(opened, "SELECT part FROM t"))))
    return states


def test_a_table_that_the_snapshot_saw_empty_is_flagged_or_stops(large: Armed) -> None:
    walk = Unflagged(large)
    with at_work(large, walk.commits, seed=9):
        with starting(large) as first:
            with gated(large, EARLY):
                await_landed(large)
                large.execute(REWRITE)
                large.execute("TRUNCATE bank.emptied")
                large.execute("INSERT INTO bank.emptied SELECT i, -1 FROM generate_series(1, 6) i")
            output, _ = first.communicate(timeout=START_SECONDS)
        assert first.returncode == 0, output
        large.run("sync", "--timeout", "900", expect=8)
    large.run("sync", "--timeout", "900", expect=8)

    assert f"[{Reason.SNAPSHOT_BLIND.value}] " in reason(large, f"bank.{REWRITTEN}")
    Installation.assert_equal(large, *TABLES, *OURS)
    assert ("streaming", 0) not in emptied_rows(large)
    walk.go_on()
    assert walk.versions > 0
    large.run("resnapshot", "--stopped")
    large.sync()
    large.assert_equal(*TABLES, *OURS, REWRITTEN)
    assert large.facts("verify")["equal"]
