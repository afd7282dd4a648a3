"""The servers that all random databases share, and how many of these there are."""

from collections.abc import Iterator, Mapping

import pytest

from tests.seeds import seed_of
from tests.servers.fixtures import started
from tests.servers.server import Server

SERVERS = ("postgres", "kafka", "registry", "connect")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("wal2lake schemas")
    group.addoption("--databases", type=int, default=1, help="random ones, each of the next seed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each database, named by its seed."""
    if "seed" in metafunc.fixturenames:
        first = seed_of(metafunc.config)
        number = metafunc.config.getoption("--databases", default=1)
        metafunc.parametrize("seed", range(first, first + number))


@pytest.fixture(scope="package")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Server]]:
    with started(request, tmp_path_factory.mktemp("schemas") / "servers", SERVERS) as found:
        yield found
