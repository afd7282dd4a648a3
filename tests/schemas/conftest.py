"""Fixtures of the random databases, which share their servers."""

from collections.abc import Iterator, Mapping

import pytest

from tests.seeds import seed_of
from tests.servers.fixtures import started
from tests.servers.server import Server

SERVERS = ("postgres", "kafka", "registry", "connect")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("wal2lake schemas")
    group.addoption(
        "--databases", type=int, default=1, help="number of random databases, each of the next seed"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per database, named by its number, not its seed, so that all workers agree."""
    if "place" in metafunc.fixturenames:
        metafunc.parametrize("place", range(metafunc.config.getoption("--databases", default=1)))


@pytest.fixture
def seed(request: pytest.FixtureRequest, place: int) -> int:
    """Return the database's own seed, from the run's seed and its number."""
    return seed_of(request.config) + place


@pytest.fixture(scope="package")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Server]]:
    with started(request, tmp_path_factory.mktemp("schemas") / "servers", SERVERS) as found:
        yield found
