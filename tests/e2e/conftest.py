"""The whole of wal2lake, by its command line, on a Postgres that it did not start."""

from collections.abc import Iterator

import pytest

from tests.e2e.installation import TABLES_SQL, Installation
from tests.servers.process import servers


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Up and applying, with a snapshot of a few thousand rows behind it; ended afterwards."""
    root = tmp_path_factory.mktemp("e2e")
    source = servers(root / "source")["postgres"]()
    try:
        installed = Installation.write(root / "lakehouse", source.start())
        installed.execute(TABLES_SQL)
        installed.run("up", "--detach")
        try:
            yield installed
        finally:
            installed.run("down")
            assert installed.processes() == []
    finally:
        source.stop()
