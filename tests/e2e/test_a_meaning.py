"""Test every kind of change through the whole pipeline: the lake equals Postgres afterwards.

Every scenario runs twice: once with a ``sync`` after each of its steps, and once with all steps
applied as one batch. All scenarios run before the first test.
"""

from typing import Any, Final

import pytest

from tests.e2e.installation import Installation
from tests.e2e.laboratory import WAYS, Laboratory
from tests.e2e.own_tables import OWN, Own, own_script, own_tables
from tests.e2e.scenarios import (
    KEYED_TABLES,
    KEYS,
    SCENARIOS,
    Scenario,
    first_key,
    last_step,
    script,
)

pytestmark = pytest.mark.e2e

_COLUMNS: Final = "id, v, big, bin, doc::text, tags, nums"


@pytest.fixture(scope="module")
def laboratory(installation: Installation) -> Laboratory:
    installation.run("sync", "--timeout", "900")
    installation.run("verify")  # the snapshot
    lab = Laboratory(installation=installation)
    lab.run(max(last_step(), *(len(own.steps) for own in OWN)), _scripts)
    return lab


def _scripts(step: int, way: int) -> list[str]:
    scripts = [script(one, step, table, way) for one in SCENARIOS for table in KEYED_TABLES]
    return scripts + [own_script(own, step, way) for own in OWN]


@pytest.fixture(scope="module")
def verdicts(laboratory: Laboratory) -> dict[str, dict[str, Any]]:
    """Return the verdict of ``verify`` on every table after all scenarios."""
    return laboratory.verdicts()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("table", KEYED_TABLES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_rows_of_a_scenario_are_equal(
    laboratory: Laboratory, scenario: Scenario, table: str, way: int
) -> None:
    first = first_key(scenario, way)
    mine = f"id BETWEEN {first} AND {first + KEYS - 1}"

    source = laboratory.source(f"SELECT {_COLUMNS} FROM lab.{table} WHERE {mine}")
    lake = laboratory.lake(table, f"SELECT {_COLUMNS.replace('::text', '')} FROM t WHERE {mine}")

    assert sum(source.values()) >= len(scenario.steps)
    assert lake == source


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_tables_of_a_scenario_are_equal(laboratory: Laboratory, own: Own, way: int) -> None:
    for table in own_tables(own, way):
        listed = laboratory.names(table)

        source = laboratory.source(f'SELECT {listed} FROM lab."{table}"')
        lake = laboratory.lake(table, f"SELECT {listed} FROM t")

        assert lake == source, table


def test_verify_finds_every_table_equal(verdicts: dict[str, dict[str, Any]]) -> None:
    """It includes hstore and jsonb, whose text only ``verify`` compares."""
    expected = {f"lab.{table}" for table in KEYED_TABLES}
    expected |= {f"lab.{table}" for own in OWN for way in (0, 1) for table in own_tables(own, way)}

    assert expected <= set(verdicts)
    assert [name for name, verdict in verdicts.items() if not verdict["equal"]] == []
