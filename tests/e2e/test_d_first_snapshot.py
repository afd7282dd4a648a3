"""Test changes of structure during the first snapshot: followed, or stopped and repaired."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.e2e.installation import Installation
from tests.meanwhile import meanwhile
from tests.operations.conftest import installed
from tests.servers.fixtures import started
from tests.waiting import until

pytestmark = pytest.mark.e2e

ROWS: Final = {"copy": 300_000, "connector": 60_000}
"""So many that either way takes longer than the changes: the connector reads far slower."""
CHANGES: Final = 12
PAUSE_SECONDS: Final = 0.4
CHANGES_SECONDS: Final = 120
SQL: Final = """
CREATE SCHEMA early;
CREATE TABLE early.a_large (id int PRIMARY KEY, v text);
CREATE TABLE early.moving (id int PRIMARY KEY, a int, b text);
CREATE TABLE early.quiet (id int PRIMARY KEY);
INSERT INTO early.a_large SELECT i, md5(i::text) FROM generate_series(1, {rows}) i;
INSERT INTO early.moving SELECT i, i, 'b' || i FROM generate_series(1, 1000) i;
INSERT INTO early.quiet VALUES (1), (2);
"""
STEPS: Final = (
    """
    ALTER TABLE early.moving ADD c{n} int DEFAULT {n};
    INSERT INTO early.moving (id) VALUES (-{n})
    """,
    """
    ALTER TABLE early.moving RENAME c{before} TO d{n};
    UPDATE early.moving SET d{n} = -1 WHERE a < 5
    """,
    """
    DELETE FROM early.moving WHERE id = {n};
    ALTER TABLE early.moving DROP d{before}
    """,
    """
    ALTER TABLE early.moving ADD e{n} text DEFAULT 'e';
    UPDATE early.moving SET e{n} = b WHERE a > 990
    """,
)


class Changes:
    """Changes of structure, made one after the other once wal2lake's event trigger notes them."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._numbers = count(1)
        self.done = 0

    def go_on(self) -> None:
        """Make the next change, if any is left and changes are noted."""
        noted = "SELECT 1 FROM pg_event_trigger WHERE evtname = 'wal2lake_changed'"
        if self.done < CHANGES and self._connection.execute(noted).fetchone():
            number = next(self._numbers)
            script = STEPS[self.done % len(STEPS)].format(n=number, before=number - 1)
            for statement in script.split(";"):
                self._connection.execute(statement.encode())
            self.done += 1


@pytest.fixture(params=ROWS)
def way(request: pytest.FixtureRequest) -> str:
    """Return how the first snapshot is read."""
    return str(request.param)


@pytest.fixture
def early(request: pytest.FixtureRequest, tmp_path: Path, way: str) -> Iterator[Installation]:
    """Yield an installation that has not been started."""
    with started(request, tmp_path / "servers", ("postgres",)) as servers:
        folder = tmp_path / "lakehouse"
        installation = installed(folder, dict(servers), ["early.*"], snapshot=way)
        installation.execute(SQL.format(rows=ROWS[way]))
        try:
            yield installation
        finally:
            installation.run("down")
            assert installation.processes() == []


def test_nothing_is_lost_of_a_table_that_changed_under_the_first_snapshot(
    early: Installation, way: str
) -> None:
    with early.connect() as connection:
        changes = Changes(connection)
        with meanwhile(changes.go_on, every=PAUSE_SECONDS):
            first = early.done("up", "--detach")
            until(lambda: first.returncode != 0 or changes.done == CHANGES, CHANGES_SECONDS)
    if first.returncode:  # a column that the snapshot was to read is gone: start again
        assert "remedy" in first.stderr
        early.run("up", "--detach")
    assert changes.done == CHANGES

    done = early.done("sync", "--timeout", "900")

    if done.returncode == 8:  # the connector restarted its snapshot by itself
        reasons = [table["reason"] for table in early.facts("status")["tables"] if table["reason"]]
        assert reasons
        assert all("remedy: " in reason for reason in reasons)
        early.run("resnapshot", "--stopped")
    else:
        assert done.returncode == 0, done.stderr
    verified = early.facts("verify")
    assert verified["equal"]
    assert max(t["comparison"]["source_rows"] for t in verified["tables"]) == ROWS[way]
