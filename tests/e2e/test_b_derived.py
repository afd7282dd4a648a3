"""Derived tables move with the captured ones, and the source itself calculates the same rows."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

import cdc
from tests.e2e.installation import Installation
from tests.e2e.workload import Workload

pytestmark = pytest.mark.e2e

DEFINED: Mapping[str, str] = {
    "marts.balances": """/* ---
doc: What the owners have, by the year in which they opened their account.
--- */
SELECT extract(year FROM opened) AS year, count(*) AS accounts, sum(balance) AS balance
FROM bank.accounts
GROUP BY extract(year FROM opened)
""",
    "marts.flows": """
SELECT a.owner, count(m.id) AS moves, sum(m.amount) AS amount, max(m.at) AS last
FROM bank.accounts a
LEFT JOIN bank.moves m ON m.from_id = a.id
GROUP BY a.owner
""",
    "marts.audited": "SELECT what, amount FROM bank.audit WHERE amount > 0",
    "marts.total": "SELECT sum(balance) AS balance, sum(accounts) AS accounts FROM marts.balances",
}


@pytest.fixture(scope="module")
def derived(installation: Installation) -> Iterator[Installation]:
    """Define the tables while everything runs; take them out again."""
    installation.run("sync", "--timeout", "900")  # the first snapshot is over
    file = installation.folder / "wal2lake.yaml"
    written = yaml.safe_load(file.read_text())
    # A cut waits for them on any machine: what happens otherwise is tested without servers.
    file.write_text(yaml.safe_dump({**written, "derived": {"seconds": 300}}))
    folder = installation.folder / "derived"
    folder.mkdir()
    for name, query in DEFINED.items():
        (folder / f"{name}.sql").write_text(query)
    installation.run("apply-config")
    yield installation
    for name in DEFINED:
        (folder / f"{name}.sql").unlink()
    file.write_text(yaml.safe_dump(written))
    installation.run("apply-config")


def entries(installation: Installation) -> dict[str, Any]:
    listed = json.loads(installation.run("derived", "list", "--json"))
    return {entry["table"]: entry for entry in listed}


def test_plan_shows_a_new_and_a_changed_definition(derived: Installation) -> None:
    file = derived.folder / "derived" / "marts.audited.sql"
    (file.parent / "marts.more.sql").write_text("SELECT id FROM bank.victim")
    file.write_text(f"-- only a comment\n{DEFINED['marts.audited']}")
    try:
        assert derived.facts("plan")["reload"] == ["derived.marts.more"]
    finally:
        (file.parent / "marts.more.sql").unlink()
    assert derived.facts("plan")["reload"] == []


def test_the_source_calculates_the_same_at_a_cut_while_both_change(derived: Installation) -> None:
    with Workload(derived.source_url, seed=41) as workload:
        for commits in (40, 80, 120):
            workload.await_commits(commits)
            report = derived.facts("derived", "verify", "--source")
            assert [table["reason"] for table in report["tables"]] == [""] * len(DEFINED)
            assert report["equal"], report
    derived.run("sync", "--timeout", "900")

    assert derived.facts("derived", "verify")["equal"]
    assert {entry["state"] for entry in entries(derived).values()} == {"streaming"}


def test_a_table_that_somebody_wrote_to_is_found_and_rebuilt(derived: Installation) -> None:
    derived.run("sync", "--timeout", "900")
    DeltaTable(f"{derived.folder}/lake/marts/audited").delete()

    rebuilt = derived.facts("derived", "rebuild", "marts.audited")

    assert rebuilt["version"] == DeltaTable(f"{derived.folder}/lake/marts/audited").version()
    assert derived.facts("derived", "verify", "--source")["equal"]


def test_readers_see_them_at_the_cut_of_the_captured_tables(derived: Installation) -> None:
    """The sum over a view of the accounts is the sum over the accounts, at one cut."""
    lake = str(derived.folder / "lake")
    cut = cdc.cut(lake=lake)
    (total,) = cdc.read("marts.total", at=cut, lake=lake).read_all().to_pylist()
    accounts = cdc.read("bank.accounts", at=cut, lake=lake).read_all()

    balances = [row["balance"] for row in accounts.to_pylist()]
    assert (total["balance"], total["accounts"]) == (sum(balances), len(balances))
    asked = "SELECT balance FROM marts.total"
    assert f"{total['balance']}" in derived.run("sql", asked, "--at", str(cut.cut))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id\nFROM bank.acounts", "marts.wrong.sql:2:6: no table bank.acounts"),
        ("SELECT id || id AS x FROM bank.victim", "operator does not exist: integer || integer"),
    ],
)
def test_apply_config_refuses_a_definition_and_names_the_place(
    derived: Installation, query: str, message: str
) -> None:
    wrong = derived.folder / "derived" / "marts.wrong.sql"
    wrong.write_text(query)
    try:
        printed = derived.done("apply-config")
    finally:
        wrong.unlink()

    assert printed.returncode != 0
    assert message in printed.stdout + printed.stderr
