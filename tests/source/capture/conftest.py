"""The source of one test, whose connector and slot are removed afterwards."""

from collections.abc import Iterator

import pytest

from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from tests.source.conftest import capturing


@pytest.fixture
def source(chain: Endpoints, schema: str) -> Iterator[Connection]:
    """Return a connection to the test's own schema."""
    with capturing(chain, schema) as connection:
        yield connection
