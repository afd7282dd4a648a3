"""Snapshot, live transactions, kills and restarts: afterwards source and lake are equal.

The tests share one installation; each makes its own changes and leaves a lake that is equal.
"""

import pytest
from deltalake import DeltaTable

from cdc.client.verify.verify import verify
from cdc.config import load
from cdc.state.pipeline import resolve
from tests.e2e.installation import Installation
from tests.e2e.workload import Workload
from tests.unpublished import unseen

pytestmark = pytest.mark.e2e

EMPTIED_AND_FILLED = """
BEGIN;
CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM bank.victim;
TRUNCATE bank.victim;
INSERT INTO bank.victim SELECT * FROM kept;
COMMIT;
"""


def test_snapshot_arrives_whole(installation: Installation) -> None:
    installation.run("sync", "--timeout", "900")

    installation.assert_equal()


def test_transactions_over_several_tables_arrive_and_verify_agrees(
    installation: Installation,
) -> None:
    with Workload(installation.source_url, seed=1) as workload:
        workload.await_commits(300)
    installation.run("sync", "--timeout", "900")

    installation.assert_equal()
    printed = installation.run("verify")
    assert "equal" in printed


def test_verify_holds_one_cut_while_the_source_goes_on(installation: Installation) -> None:
    with Workload(installation.source_url, seed=2) as workload:
        workload.await_commits(20)
        before = workload.committed
        installation.run("verify")
        assert workload.committed > before


def test_verify_is_not_misled_by_a_table_that_is_emptied_meanwhile(
    installation: Installation,
) -> None:
    """Postgres shows no row of it to a snapshot of before, also where it is filled again."""
    config = load(installation.folder / "wal2lake.yaml")
    emptied = list[str]()

    def act(doing: str) -> None:
        if doing.startswith("waiting for the cut") and not emptied:
            emptied.append(doing)
            installation.execute(EMPTIED_AND_FILLED)

    report = verify(resolve(config), timeout=300, tell=act)

    [victim] = [table for table in report.tables if table.table == "bank.victim"]
    assert emptied
    assert report.equal, victim
    assert victim.comparison.source_rows == victim.comparison.lake_rows > 0
    assert victim.again_at is not None
    assert victim.again_at > report.cut


def test_verify_names_the_key_of_a_planted_difference(installation: Installation) -> None:
    """The lake's table is changed behind the job's back, and put back afterwards."""
    installation.run("sync", "--timeout", "900")
    path = str(installation.folder / "lake" / "bank" / "emptied")
    installation.execute("INSERT INTO bank.emptied VALUES (7, 'here'), (8, 'there')")
    installation.run("sync", "--timeout", "900")
    elsewhere = "UPDATE bank.emptied SET value = 'elsewhere' WHERE id = 8"
    installation.execute(unseen("bank.emptied", elsewhere))

    printed = installation.run("verify", expect=1)

    assert "bank.emptied" in printed
    assert "8" in printed
    installation.execute("UPDATE bank.emptied SET value = 'elsewhere now' WHERE id = 8")
    installation.run("sync", "--timeout", "900")
    assert DeltaTable(path).version() > 0
    installation.assert_equal("emptied")


def test_truncate_empties_the_table_and_the_connector_goes_on(installation: Installation) -> None:
    installation.execute("INSERT INTO bank.emptied VALUES (1, 'before')")
    installation.execute(
        "BEGIN; INSERT INTO bank.emptied VALUES (2, 'before'); TRUNCATE bank.emptied;"
        "INSERT INTO bank.emptied VALUES (3, 'after'); COMMIT"
    )
    installation.run("sync", "--timeout", "900")

    installation.assert_equal("emptied")
    assert list(installation.lake_rows("emptied")) == [(3, "after")]


@pytest.mark.parametrize("server", ["job", "connect", "kafka"])
def test_a_killed_process_loses_nothing_and_doubles_nothing(
    installation: Installation, server: str
) -> None:
    embedded = server not in installation.servers
    pid = installation.pid(server) if embedded else None
    with Workload(installation.source_url, seed=10 + len(server)) as workload:
        workload.await_commits(100)
        installation.crash(server)
        workload.await_commits(100)
    installation.run("sync", "--timeout", "500")

    installation.assert_equal()
    if embedded:
        assert installation.pid(server) != pid


def test_changes_made_while_all_is_down_arrive_after_a_restart(installation: Installation) -> None:
    installation.down()
    assert installation.processes() == []
    with Workload(installation.source_url, seed=20) as workload:
        workload.await_commits(50)
    installation.up()
    installation.run("sync", "--timeout", "900")

    installation.assert_equal()
    installation.run("verify")


def test_tables_and_log_are_compacted_while_running(installation: Installation) -> None:
    for path in ("bank/accounts", "_wal2lake/log"):
        history = DeltaTable(str(installation.folder / "lake" / path)).history()
        operations = [commit["operation"] for commit in history]
        assert "OPTIMIZE" in operations, path
