"""Provide one Postgres for all tests of this folder, and both engines with the edge rows."""

from collections.abc import Iterator

import duckdb
import pytest

from cdc.source.server.connection import Connection, connect
from tests.servers.fixtures import address
from tests.source.derive.edge_rows import fill_duckdb, fill_postgres


@pytest.fixture(scope="package")
def source_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the URL of one Postgres for the folder."""
    yield from address(request, tmp_path_factory, "postgres")


@pytest.fixture(scope="module")
def postgres(source_url: str) -> Iterator[Connection]:
    """Yield a connection to it, with the edge rows; its texts are ordered as in English."""
    with connect(source_url) as connection:
        fill_postgres(connection, "en-x-icu")
        yield connection


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB with the edge rows."""
    with duckdb.connect() as connection:
        fill_duckdb(connection)
        yield connection
