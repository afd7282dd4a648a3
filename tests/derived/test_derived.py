"""Derived tables move with the captured ones, and the source itself calculates the same rows."""

import json
from typing import Any, Final

import pytest
import yaml
from deltalake import DeltaTable

import cdc
from tests.derived.conftest import DEFINED, define
from tests.e2e.installation import Installation
from tests.e2e.workload import Workload

pytestmark = pytest.mark.e2e

PATTERN: Final = """/* ---
kind: pattern
max_partition_rows: 100000
--- */
SELECT * FROM bank.moves MATCH_RECOGNIZE (
  PARTITION BY from_id ORDER BY at
  MEASURES FIRST(A.id) AS first_id, COUNT(B.id) AS more, LAST(B.amount) AS amount
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B+) DEFINE B AS B.amount > PREV(B.amount))
"""


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
    by_spark = derived.any_facts("derived", "verify", "--engine", "spark")
    assert (by_spark["witness"], by_spark["equal"]) == ("spark", True), by_spark
    assert {entry["state"] for entry in entries(derived).values()} == {"streaming"}


def test_a_table_that_somebody_wrote_to_is_found_and_rebuilt(derived: Installation) -> None:
    derived.run("sync", "--timeout", "900")
    DeltaTable(f"{derived.folder}/lake/marts/audited").delete()

    rebuilt = derived.facts("derived", "rebuild", "marts.audited")

    assert rebuilt["version"] == DeltaTable(f"{derived.folder}/lake/marts/audited").version()
    assert derived.facts("derived", "verify", "--source")["equal"]


def test_spark_rebuilds_a_table_while_rows_change(derived: Installation) -> None:
    """Its steps by a scope key stay in the job."""
    file = derived.folder / "wal2lake.yaml"
    before = file.read_text()
    written = yaml.safe_load(before)
    written["derived"]["engine"] = "spark"
    file.write_text(yaml.safe_dump(written))
    try:
        derived.run("apply-config")
        with Workload(derived.source_url, seed=47) as workload:
            derived.run("derived", "rebuild", "marts.flows")
            workload.await_commits(40)
        derived.run("sync", "--timeout", "900")
        explained = derived.run("derived", "explain", "marts.flows")
    finally:
        file.write_text(before)
        derived.run("apply-config")

    assert "of them calculated by Spark" in explained
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


def test_a_pattern_is_followed_while_rows_change(derived: Installation) -> None:
    """Postgres has no such query: it is calculated again from the cut's versions."""
    define(derived, {"marts.growing": PATTERN})
    with Workload(derived.source_url, seed=43) as workload:
        workload.await_commits(60)
    derived.run("sync", "--timeout", "900")

    (verdict,) = derived.facts("derived", "verify", "marts.growing")["tables"]
    assert (verdict["equal"], verdict["rows"] > 0) == (True, True)
    (derived.folder / "derived" / "marts.growing.sql").unlink()
    derived.run("apply-config")


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


LATE: Final = """/* ---
late: {{column: at, allowed: 1 minute, policy: {policy}, idle: 1 second}}
--- */
SELECT w.window_start, count(*) AS moves, sum(w.amount) AS amount
FROM tumble(bank.moves, at, INTERVAL '1 hour') w
GROUP BY w.window_start
"""


def test_late_rows_are_found_in_the_log(derived: Installation) -> None:
    """A move of long ago is counted or put aside, and the source says the same of the windows."""
    policies = ("keep", "aside")
    define(derived, {f"marts.{policy}": LATE.format(policy=policy) for policy in policies})
    with Workload(derived.source_url, seed=45) as workload:
        workload.await_commits(60)
    derived.run("sync", "--timeout", "900")
    derived.execute("UPDATE bank.moves SET at = at - interval '1 year' WHERE id % 7 = 0")
    derived.run("sync", "--timeout", "900")
    derived.run("derived", "rebuild", "marts.aside")

    late = derived.facts("derived", "late", "marts.aside")["rows"]
    assert {row["_op"] for row in late if row["_effect"] == "left out"} == {"u"}
    assert not any(row["_effect"] == "added" for row in late)
    kept = derived.facts("derived", "verify", "marts.keep", "--source")
    assert kept["equal"], kept
    assert derived.facts("derived", "verify")["equal"]
    listed = entries(derived)
    assert listed["marts.keep"]["lateness"]["late"] > 0
    oldest = {name: min(row["window_start"] for row in rows_of(derived, name)) for name in policies}
    assert oldest["keep"] < oldest["aside"]
    for policy in policies:
        (derived.folder / "derived" / f"marts.{policy}.sql").unlink()
    derived.run("apply-config")


def rows_of(derived: Installation, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        cdc.read(f"marts.{name}", lake=str(derived.folder / "lake")).read_all().to_pylist()
    )
    return sorted(rows, key=repr)
