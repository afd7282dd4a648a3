"""Provides an installation run by its command line on a Postgres that it did not start."""

from collections.abc import Iterator

import pytest

from tests.e2e.installation import TABLES_SQL, Installation
from tests.e2e.own_tables import own_sql
from tests.e2e.scenarios import keyed_sql
from tests.e2e.structures import changes_sql
from tests.servers.fixtures import on_containers, started, worker_settings


@pytest.fixture(scope="package")
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Yield a running installation that takes a snapshot of a few thousand rows.

    As processes, all servers but the source are embedded; as containers, none is.
    """
    root = tmp_path_factory.mktemp("e2e")
    others = ("kafka", "registry", "connect") if on_containers(request) else ()
    with started(request, root / "servers", ("postgres", *others)) as servers:
        worker = worker_settings(request)
        installed = Installation.write(root / "lakehouse", servers, worker)
        for script in (TABLES_SQL, keyed_sql(), own_sql(), changes_sql()):
            installed.execute(script)
        installed.run("up", "--detach")
        try:
            yield installed
        finally:
            installed.run("down")
            assert installed.processes() == []
