"""Runs one real stack for all experiments: Postgres, Kafka, registry, Connect."""

from collections.abc import Generator, Iterator

import pytest

from cdc.stack.process.process import last_lines
from tests.experiments.pipeline import Pipeline, Stack
from tests.servers.fixtures import started, worker_settings
from tests.servers.process import ProcessServer

LINES = 25


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
    """Yield a pipeline with a schema and names of the test's own; it is not started yet."""
    name = request.node.name.removeprefix("test_").partition("[")[0][:40].rstrip("_")
    made = Pipeline(stack=stack, name=name, folder=tmp_path_factory.mktemp(name))
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the ends of the servers' log files to a failure, for runs on other machines."""
    report = yield
    used = getattr(item, "funcargs", {}).get("pipeline")
    if report.failed and used is not None:
        for name, server in used.stack.servers.items():
            if isinstance(server, ProcessServer) and server.process is not None:
                report.sections.append((name, last_lines(server.process.log, LINES)))
    return report
