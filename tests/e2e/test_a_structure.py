"""Test changes of columns and keys among changes of rows: a table ends equal, or stopped.

Runs after test_a_meaning.py; leaves the tables stopped that cannot follow.
"""

import json
from typing import Any

import pytest

from tests.e2e.installation import Installation
from tests.e2e.laboratory import WAYS, Laboratory
from tests.e2e.structures import CHANGES, Change, change_script, table_of

pytestmark = pytest.mark.e2e

FOLLOWED = [change for change in CHANGES if not change.stops]
STOPPED = [change for change in CHANGES if change.stops]
WHILE_DOWN = {
    "s_add0": (
        "UPDATE lab.s_add0 SET a = -1 WHERE id = 2; ALTER TABLE lab.s_add0 ADD e int DEFAULT 9;"
        "INSERT INTO lab.s_add0 (id, e) VALUES (12, 1); ALTER TABLE lab.s_add0 RENAME c TO f;"
        "UPDATE lab.s_add0 SET f = 'renamed' WHERE id = 3; ALTER TABLE lab.s_add0 DROP b;"
        "DELETE FROM lab.s_add0 WHERE id = 4"
    ),
    "s_default0": (
        "UPDATE lab.s_default0 SET c = 1 WHERE id = 1;"
        "ALTER TABLE lab.s_default0 ALTER c TYPE bigint;"
        "UPDATE lab.s_default0 SET c = 5000000000 WHERE id = 2"
    ),
    "s_swap_names0": (
        "UPDATE lab.s_swap_names0 SET b = 'was b' WHERE id = 5; BEGIN;"
        "ALTER TABLE lab.s_swap_names0 RENAME b TO x; ALTER TABLE lab.s_swap_names0 RENAME c TO b;"
        "ALTER TABLE lab.s_swap_names0 RENAME x TO c; COMMIT;"
        "UPDATE lab.s_swap_names0 SET b = 'is b' WHERE id = 6"
    ),
    "s_not_null0": (
        "BEGIN; UPDATE lab.s_not_null0 SET b = 'k' || id; UPDATE lab.s_not_null0 SET a = 0;"
        "ALTER TABLE lab.s_not_null0 DROP CONSTRAINT s_not_null0_pkey, ADD PRIMARY KEY (b); COMMIT;"
        "UPDATE lab.s_not_null0 SET id = 1000 WHERE b = 'k2'"
    ),
    "s_bag0": (
        "ALTER TABLE lab.s_bag0 ADD f text DEFAULT 'f'; INSERT INTO lab.s_bag0 VALUES (1);"
        "DELETE FROM lab.s_bag0 WHERE ctid = (SELECT min(ctid) FROM lab.s_bag0)"
    ),
}
"""Changes of tables that follow, with rows in between, while connector and job are down."""


@pytest.fixture(scope="module")
def laboratory(installation: Installation) -> Laboratory:
    lab = Laboratory(installation=installation)
    lab.run(max(len(change.steps) for change in CHANGES), _scripts)
    return lab


def _scripts(step: int, way: int) -> list[str]:
    return [change_script(change, step, way) for change in CHANGES]


@pytest.fixture(scope="module")
def verdicts(laboratory: Laboratory) -> dict[str, dict[str, Any]]:
    return laboratory.verdicts()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("change", FOLLOWED, ids=lambda change: change.name)
def test_a_change_is_followed(
    laboratory: Laboratory, verdicts: dict[str, dict[str, Any]], change: Change, way: int
) -> None:
    table = table_of(change, way)
    listed = laboratory.names(table)

    source = laboratory.source(f"SELECT {listed} FROM ONLY lab.{table}")
    lake = laboratory.lake(table, f"SELECT {listed} FROM t")

    assert lake == source
    assert verdicts[f"lab.{table}"]["equal"]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("change", STOPPED, ids=lambda change: change.name)
def test_a_change_that_cannot_be_followed_stops_its_table_and_no_other(
    laboratory: Laboratory, change: Change, way: int
) -> None:
    tables = {entry["table"]: entry for entry in laboratory.installation.facts("status")["tables"]}

    table = tables[f"lab.{table_of(change, way)}"]

    assert table["state"] == "stopped"
    assert change.stops in table["reason"]
    assert "remedy" in table["reason"]


@pytest.fixture(scope="module")
def restarted(laboratory: Laboratory) -> dict[str, dict[str, Any]]:
    """Restart everything and give back one of two lost keys; return the tables by name."""
    laboratory.installation.run("down")
    laboratory.installation.execute(
        "ALTER TABLE lab.s_key_lost0 ADD PRIMARY KEY (id);"
        "UPDATE lab.s_key_lost0 SET a = 0 WHERE id = 1;"
        "CREATE TABLE lab.late (id int PRIMARY KEY); INSERT INTO lab.late VALUES (1)"
    )
    laboratory.execute(WHILE_DOWN.values())
    laboratory.installation.run("up", "--detach")
    laboratory.sync()  # the cut at which the key is back; the table follows from the next cut on
    laboratory.sync()
    tables = laboratory.installation.facts("status")["tables"]
    return {table["table"]: table for table in tables}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("change", STOPPED, ids=lambda change: change.name)
def test_a_start_does_not_wait_for_a_table_that_cannot_go_on(
    restarted: dict[str, dict[str, Any]], change: Change, way: int
) -> None:
    table = table_of(change, way)
    back = table == "s_key_lost0"

    assert (restarted[f"lab.{table}"]["state"] == "streaming") == back
    assert ("remedy" in restarted[f"lab.{table}"]["reason"]) != back


def test_a_table_follows_again_once_its_key_is_back(
    laboratory: Laboratory, restarted: dict[str, dict[str, Any]]
) -> None:
    assert restarted["lab.s_key_lost0"]["state"] == "streaming"
    verdicts = laboratory.verdicts()

    assert verdicts["lab.s_key_lost0"]["equal"]
    assert not verdicts["lab.s_key_lost1"]["equal"] or verdicts["lab.s_key_lost1"]["reason"]
    assert not verdicts["lab.s_gone0"]["equal"]


@pytest.mark.parametrize("table", WHILE_DOWN)
def test_changes_made_while_the_connector_was_stopped_are_followed(
    laboratory: Laboratory, restarted: dict[str, dict[str, Any]], table: str
) -> None:
    assert restarted[f"lab.{table}"]["state"] == "streaming"
    listed = laboratory.names(table)
    source = laboratory.source(f"SELECT {listed} FROM ONLY lab.{table}")
    assert laboratory.lake(table, f"SELECT {listed} FROM t") == source


def test_a_resnapshot_restores_what_a_table_missed_while_away(
    laboratory: Laboratory, restarted: dict[str, dict[str, Any]]
) -> None:
    away = [f"lab.{name}0" for name in ("s_renamed_and_back", "s_away_at_once", "s_unpublished")]
    assert {restarted[table]["state"] for table in away} == {"stopped"}

    laboratory.installation.run("resnapshot", *away)
    laboratory.sync()

    verdicts = laboratory.verdicts()
    assert [verdicts[table]["equal"] for table in away] == [True, True, True]


def test_a_table_that_is_new_since_the_snapshot_is_named_by_check(
    laboratory: Laboratory, restarted: dict[str, dict[str, Any]]
) -> None:
    printed = laboratory.installation.done("check", "--json").stdout
    findings = json.loads(printed[printed.index("[") :])

    assert "lab.late" not in restarted
    [finding] = [
        one for one in findings if one["subject"] == "lab.late" and one["level"] == "warning"
    ]
    assert "not in the lake yet" in finding["message"]
