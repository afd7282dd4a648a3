"""What every change means, by the whole pipeline: the lake equals Postgres after each scenario.

Every scenario is run twice side by side: once with a ``sync`` after each of its steps, and once
with all of its steps applied as one batch. All are run before the first test looks.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cdc.operate import requests
from cdc.operate.requests import Request
from tests.e2e.installation import Installation
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

STEP_BY_STEP: Final = 0
AT_ONCE: Final = 1
_COLUMNS: Final = "id, v, big, bin, doc::text, tags, nums"


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    installation: Installation

    def run(self) -> None:
        steps = max(last_step(), *(len(own.steps) for own in OWN))
        for step in range(steps):
            self._execute(step, STEP_BY_STEP)
            self.installation.run("sync", "--timeout", "300")
        with self._held():
            for step in range(steps):
                self._execute(step, AT_ONCE)
        self.installation.run("sync", "--timeout", "300")

    def _execute(self, step: int, way: int) -> None:
        scripts = [script(one, step, table, way) for one in SCENARIOS for table in KEYED_TABLES]
        scripts += [own_script(own, step, way) for own in OWN]
        with self.installation.connect() as connection:
            # One by one: statements sent together would be one transaction.
            for statement in ";".join(scripts).split(";"):
                if statement.strip():
                    connection.execute(statement.encode())

    @contextmanager
    def _held(self) -> Iterator[None]:
        """No cut is published meanwhile, so that what happens lies in one batch."""
        folder = requests.directory(self.installation.state_dir)
        hold = Request(id=uuid.uuid4().hex, expires_at=time.time() + 300)
        requests.write(folder, hold)
        try:
            yield
        finally:
            requests.remove(folder, hold.id)

    def source(self, query: str) -> Counter[tuple[Any, ...]]:
        with self.installation.connect() as connection:
            return Counter(_hashable(row) for row in connection.execute(query.encode()))

    def lake(self, table: str, query: str) -> Counter[tuple[Any, ...]]:
        return self.installation.lake_query("lab", table, query)


@pytest.fixture(scope="module")
def laboratory(installation: Installation) -> Laboratory:
    installation.run("sync", "--timeout", "300")
    installation.run("verify")  # the snapshot
    made = Laboratory(installation=installation)
    made.run()
    return made


@pytest.fixture(scope="module")
def verdicts(laboratory: Laboratory) -> dict[str, dict[str, Any]]:
    """What ``verify`` says of every table after all scenarios."""
    printed = laboratory.installation.any_facts("verify")
    return {verdict["table"]: verdict for verdict in printed["tables"]}


@pytest.mark.parametrize("way", [STEP_BY_STEP, AT_ONCE], ids=["steps", "batch"])
@pytest.mark.parametrize("table", KEYED_TABLES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_rows(laboratory: Laboratory, scenario: Scenario, table: str, way: int) -> None:
    first = first_key(scenario, way)
    mine = f"id BETWEEN {first} AND {first + KEYS - 1}"

    source = laboratory.source(f"SELECT {_COLUMNS} FROM lab.{table} WHERE {mine}")
    lake = laboratory.lake(table, f"SELECT {_COLUMNS.replace('::text', '')} FROM t WHERE {mine}")

    assert sum(source.values()) >= len(scenario.steps)
    assert lake == source


@pytest.mark.parametrize("way", [STEP_BY_STEP, AT_ONCE], ids=["steps", "batch"])
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_tables(laboratory: Laboratory, own: Own, way: int) -> None:
    for table in own_tables(own, way):
        names = _names(laboratory, table)
        listed = ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)

        source = laboratory.source(f'SELECT {listed} FROM lab."{table}"')
        lake = laboratory.lake(table, f"SELECT {listed} FROM t")

        assert lake == source, table


def test_verify_finds_every_table_equal(verdicts: dict[str, dict[str, Any]]) -> None:
    """Hstore and jsonb too, whose text only ``verify`` compares."""
    expected = {f"lab.{table}" for table in KEYED_TABLES}
    expected |= {f"lab.{table}" for own in OWN for way in (0, 1) for table in own_tables(own, way)}

    assert expected <= set(verdicts)
    assert [name for name, verdict in verdicts.items() if not verdict["equal"]] == []


def _names(laboratory: Laboratory, table: str) -> list[str]:
    query = (
        "SELECT attname FROM pg_attribute WHERE attrelid = "
        f"'lab.\"{table}\"'::regclass AND attnum > 0 AND NOT attisdropped"
    )
    return [str(name) for (name,) in laboratory.source(query)]


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
