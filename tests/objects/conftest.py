"""One object store for the tests of this folder; each has a bucket of its own."""

from collections.abc import Iterator

import pytest

from cdc.lake.files import s3_access
from tests.objects.server import ObjectServer, object_server


@pytest.fixture(scope="package")
def running() -> Iterator[ObjectServer]:
    with pytest.MonkeyPatch.context() as environment, object_server() as server:
        for name, text in server.environment().items():
            environment.setenv(name, text)
        yield server
        s3_access.bucket_store.cache_clear()
        s3_access.arrow_files.cache_clear()


@pytest.fixture
def objects(running: ObjectServer) -> Iterator[ObjectServer]:
    """Yield the store, which fails in no way when the test begins and ends."""
    running.faults.forget()
    yield running
    running.faults.heal()


@pytest.fixture
def lake(objects: ObjectServer) -> str:
    return objects.lake()
