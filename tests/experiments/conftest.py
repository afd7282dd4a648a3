"""One real chain for all experiments: Postgres, Kafka, registry, Connect."""

from collections.abc import Iterator

import pytest

from tests.experiments.pipeline import Pipeline, Stack
from tests.servers.fixtures import started, worker_settings


@pytest.fixture(scope="package")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    names = ("postgres", "kafka", "registry", "connect")
    with started(request, tmp_path_factory.mktemp("experiments"), names) as servers:
        yield Stack(servers=servers, worker=worker_settings(request))


@pytest.fixture
def pipeline(
    stack: Stack, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pipeline]:
    """A schema, a publication and a connector of the test's own; not started yet."""
    name = request.node.name.removeprefix("test_").partition("[")[0][:40].rstrip("_")
    made = Pipeline(stack=stack, name=name, folder=tmp_path_factory.mktemp(name))
    yield made
    made.close()
