"""Real servers from Postgres to Kafka Connect for all tests of this folder.

Each test has its own source, whose connector and slot are removed afterwards.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.kafka.broker import Broker
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from tests.servers.fixtures import started
from tests.source.conftest import capturing


@pytest.fixture(scope="package")
def chain_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state directory of the servers of ``chain``."""
    return tmp_path_factory.mktemp("chain")


@pytest.fixture(scope="package")
def chain(request: pytest.FixtureRequest, chain_state: Path) -> Iterator[Endpoints]:
    """Start Postgres, Kafka, registry and Connect, which play the user's own servers."""
    names = ("postgres", "kafka", "registry", "connect")
    with started(request, chain_state, names) as servers:
        yield Endpoints(
            source_url=servers["postgres"].address,
            kafka=Broker(servers["kafka"].address),
            registry=servers["registry"].address,
            connect=servers["connect"].address,
        )


@pytest.fixture
def source(chain: Endpoints, schema: str) -> Iterator[Connection]:
    """Return a connection to the test's own schema."""
    with capturing(chain, schema) as connection:
        yield connection
