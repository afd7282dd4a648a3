"""Provide one Postgres for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.servers.fixtures import address


@pytest.fixture(scope="package")
def source_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the URL of one Postgres for the folder."""
    yield from address(request, tmp_path_factory, "postgres")
