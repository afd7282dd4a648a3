"""An installation without servers, except a registry that answers."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc.config import Config, load
from cdc.lake.layout import quarantine_path, table_path
from cdc.lake.records.quarantine import Quarantine
from cdc.state import job_state
from cdc.state.job_state import JobState
from tests.client.quarantine.refused import NO_KEY, PAIRS, answering, lake_table


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Config]:
    """Yield a configuration with a registry, a running job and two tables in the lake."""
    with answering() as port:
        (tmp_path / "wal2lake.yaml").write_text(
            "source: {url: 'postgresql://nobody@localhost:1/none', tables: [public.*]}\n"
            "kafka: {bootstrap_servers: 'localhost:1'}\nconnect: {url: 'http://localhost:1'}\n"
            f"registry: {{url: 'http://127.0.0.1:{port}'}}\nlake: {{path: lake}}\n"
        )
        made = load(tmp_path / "wal2lake.yaml")
        made.state_dir.mkdir()
        job_state.write(made.state_dir, JobState.of_this_process("applying", datetime.now(UTC)))
        for table, key in ((PAIRS, ["a", "b"]), (NO_KEY, [])):
            lake_table(Path(table_path(made, table)), key)
        yield made


@pytest.fixture
def quarantine(config: Config) -> Quarantine:
    return Quarantine(quarantine_path(config))
