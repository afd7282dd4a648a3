"""An installation of one table, without a broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.client.status import lag
from cdc.config import Config, load
from cdc.source.catalog.captured import captured_tables
from cdc.source.server.connection import Connection, connect
from cdc.source.setup.prepare import prepare
from tests.client.protocol.stand_in import CONFIG


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only briefly for a broker, because there is none."""
    monkeypatch.setattr(lag, "SECONDS", 0.3)


@pytest.fixture
def path(source_url: str, tmp_path: Path) -> Path:
    made = tmp_path / "wal2lake.yaml"
    made.write_text(CONFIG.format(url=source_url))
    return made


@pytest.fixture
def config(path: Path) -> Config:
    return load(path, {})


@pytest.fixture
def source(config: Config, source_url: str) -> Iterator[Connection]:
    with connect(source_url) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        connection.execute("DROP PUBLICATION IF EXISTS wal2lake")
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO shop.t VALUES (1)")
        prepare(connection, config, captured_tables(connection, config))
        yield connection
