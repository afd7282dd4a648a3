"""Tables whose columns and keys change while rows come and go: equal afterwards, or stopped.

Runs after test_a_meaning.py; leaves those tables stopped that cannot follow.
"""

from typing import Any

import pytest

from tests.e2e.installation import Installation
from tests.e2e.laboratory import WAYS, Laboratory
from tests.e2e.structures import CHANGES, Change, change_script, table_of

pytestmark = pytest.mark.e2e

FOLLOWED = [change for change in CHANGES if not change.stops]
STOPPED = [change for change in CHANGES if change.stops]


@pytest.fixture(scope="module")
def laboratory(installation: Installation) -> Laboratory:
    made = Laboratory(installation=installation)
    made.run(max(len(change.steps) for change in CHANGES), _scripts)
    return made


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

    source = laboratory.source(f"SELECT {listed} FROM lab.{table}")
    lake = laboratory.lake(table, f"SELECT {listed} FROM t")

    assert lake == source
    assert verdicts[f"lab.{table}"]["equal"]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("change", STOPPED, ids=lambda change: change.name)
def test_a_change_that_cannot_be_followed_stops_its_table_and_no_other(
    laboratory: Laboratory, change: Change, way: int
) -> None:
    tables = {table["table"]: table for table in laboratory.installation.facts("status")["tables"]}

    found = tables[f"lab.{table_of(change, way)}"]

    assert found["state"] == "stopped"
    assert change.stops in found["reason"]
    assert "remedy" in found["reason"]
