"""One pipeline for all tests of types: it takes a snapshot of random rows, then streams changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.kafka.broker import Broker
from cdc.state.endpoints import Endpoints
from tests.kinds import odd, special
from tests.kinds.columns import SETUP, TABLES
from tests.kinds.pipeline import Pipeline, random_rows, running
from tests.servers.fixtures import started, worker_settings

SERVERS = ("postgres", "kafka", "registry", "connect")
QUICK, DEEP = 60, 10_000


@pytest.fixture(scope="package")
def number(request: pytest.FixtureRequest) -> int:
    """The number of rows of each table, half of them for the snapshot."""
    return DEEP if request.config.getoption("--deep") else QUICK


@pytest.fixture(scope="package")
def pipeline(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, number: int
) -> Iterator[Pipeline]:
    def before(new: Pipeline) -> None:
        new.execute(SETUP)
        for table, kinds in TABLES.items():
            new.create(table, kinds)
            new.insert(table, random_rows(kinds, number // 2))
        special.create(new)
        odd.create(new)

    folder = tmp_path_factory.mktemp("kinds")
    with started(request, _folder(folder, "servers"), SERVERS) as servers:
        endpoints = Endpoints(
            source_url=servers["postgres"].address,
            kafka=Broker(servers["kafka"].address),
            registry=servers["registry"].address,
            connect=servers["connect"].address,
        )
        worker = worker_settings(request)
        with running(_folder(folder, "pipeline"), endpoints, worker, before) as one:
            yield one


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
