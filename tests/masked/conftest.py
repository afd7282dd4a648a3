"""Installations that mask columns, one for each way of applying."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.e2e.installation import Installation
from tests.local_spark import QUICK
from tests.masked.clinic import COLUMNS, SALT, SQL, TABLES, inserted
from tests.servers.fixtures import started

WAYS: Final = {"driver": {}, "spark": {"local_events": 0}}
"""Values are masked before Kafka, whoever applies them: the second way is for ``--deep``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clinic(Installation):
    """An installation that gets the salt by its environment."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands."""
        given = os.environ | {"WAL2LAKE_SOURCE__HASH_SALT": SALT}
        return given | {"PYTHONPATH": str(Path(__file__).parents[2])}

    def sync(self) -> None:
        """Wait until the lake has caught up; one table is degraded, and others may be stopped."""
        done = self.done("sync", "--timeout", "300")
        assert "the lake has caught up" in done.stdout + done.stderr, done.stdout + done.stderr

    def configure(self, columns: dict[str, Any]) -> None:
        """Write other masks into the configuration."""
        path = self.folder / "wal2lake.yaml"
        written = yaml.safe_load(path.read_text())
        written["source"]["columns"] = columns
        path.write_text(yaml.safe_dump(written, sort_keys=False))


@pytest.fixture(scope="module", params=["driver", pytest.param("spark", marks=pytest.mark.deep)])
def clinic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clinic]:
    """Yield a running installation whose first snapshot is in the lake."""
    root = tmp_path_factory.mktemp(f"masked-{request.param}")
    with started(request, root / "servers", ("postgres",)) as servers:
        made = Clinic(folder=root / "lakehouse", servers=dict(servers))
        made.folder.mkdir()
        written = {
            "source": {
                "url": made.source_url,
                "tables": ["clinic.*", "ward.*"],
                "append_only": ["clinic.clicks"],
                "columns": COLUMNS,
            },
            "lake": {"path": "lake"},
            "spark": {"master": "local[2]", "driver_memory": "1500m", "conf": dict(QUICK)},
            "job": WAYS[request.param],
        }
        (made.folder / "wal2lake.yaml").write_text(yaml.safe_dump(written, sort_keys=False))
        made.execute(SQL)
        for table in (*TABLES, "refused"):
            made.execute(inserted(table, 1, 60))
        made.execute("UPDATE clinic.refused SET day = 'infinity' WHERE id = 3")
        made.run("up", "--detach")
        try:
            made.sync()
            yield made
        finally:
            made.run("down")
            assert made.processes() == []
