"""An installation with derived tables, which are defined before its first snapshot."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
import yaml

from tests.e2e.installation import TABLES_SQL, Installation
from tests.servers.fixtures import started

DEFINED: Final[Mapping[str, str]] = {
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
    "marts.hourly": """
SELECT w.window_start, count(*) AS moves, sum(w.amount) AS amount
FROM tumble(bank.moves, at, INTERVAL '1 hour') w
GROUP BY w.window_start
""",
    "marts.audited": "SELECT what, amount FROM bank.audit WHERE amount > 0",
    "marts.aged": "SELECT m.id, m.amount, cut_time() AS seen FROM bank.moves m\n"
    "WHERE cut_time() - INTERVAL '100000 days' < m.at",
    "marts.total": "SELECT sum(balance) AS balance, sum(accounts) AS accounts FROM marts.balances",
}
"""Of these Postgres can calculate all."""


@pytest.fixture(scope="package")
def derived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    root = tmp_path_factory.mktemp("derived")
    with started(request, root / "servers", ("postgres",)) as servers:
        installed = Installation.write(root / "lakehouse", servers, {})
        written = yaml.safe_load((installed.folder / "wal2lake.yaml").read_text())
        written["source"]["tables"] = ["bank.*"]
        # A cut waits for them on any machine: what happens otherwise is tested without servers.
        written["derived"] = {"seconds": 300}
        (installed.folder / "wal2lake.yaml").write_text(yaml.safe_dump(written))
        installed.execute(TABLES_SQL)
        write(installed, DEFINED)
        installed.run("up", "--detach")
        try:
            installed.run("sync", "--timeout", "900")
            yield installed
        finally:
            installed.run("down")
            assert installed.processes() == []


def define(installation: Installation, definitions: Mapping[str, str]) -> None:
    """Write the files and let the running job take them up."""
    write(installation, definitions)
    installation.run("apply-config")


def write(installation: Installation, definitions: Mapping[str, str]) -> None:
    """Write the files; a job that starts takes them up."""
    folder = installation.folder / "derived"
    folder.mkdir(exist_ok=True)
    for name, query in definitions.items():
        (folder / f"{name}.sql").write_text(query)
