"""Real servers for tests, by ``--servers=process`` or ``--servers=container``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import container
from tests.servers.server import Server

Makers = Mapping[str, Callable[[], Server]]


@pytest.fixture
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Makers]:
    """Yield a maker for each server, by name, of the requested kind; remove all afterwards."""
    with makers(request, tmp_path) as by_name:
        yield by_name


@pytest.fixture(scope="module")
def source_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the URL of one Postgres per module.

    Each test uses its own schema and pipeline name.
    """
    yield from address(request, tmp_path_factory, "postgres")


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the address of a Kafka without other servers, one per module."""
    yield from address(request, tmp_path_factory, "kafka")


def address(
    request: pytest.FixtureRequest, folders: pytest.TempPathFactory, name: str
) -> Iterator[str]:
    """Start one server by its name, and yield its address."""
    with started(request, folders.mktemp(name), (name,)) as servers:
        yield servers[name].address


def on_containers(request: pytest.FixtureRequest) -> bool:
    """Return whether the servers of this run are containers."""
    return bool(request.config.getoption("--servers") == "container")


def worker_settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the keys of ``connect`` by which a worker reaches servers of this kind."""
    return container.WORKER if on_containers(request) else {}


@contextmanager
def started(
    request: pytest.FixtureRequest, folder: Path, names: tuple[str, ...]
) -> Iterator[dict[str, Server]]:
    """Start servers that belong together, in this order; for fixtures of any scope."""
    with makers(request, folder) as by_name:
        running = {name: by_name[name]() for name in names}
        for server in running.values():
            server.start()
        yield running


@contextmanager
def makers(request: pytest.FixtureRequest, folder: Path) -> Iterator[Makers]:
    """Yield a maker for each server of the requested kind; skip if that kind cannot run."""
    if on_containers(request):
        if reason := container.why_not():
            pytest.skip(reason)
        with container.servers() as containers:
            yield containers
    else:
        with _processes(folder) as processes:
            yield processes


@contextmanager
def _processes(root: Path) -> Iterator[Makers]:
    # Imported here: a run on containers needs none of the embedded stack's jars.
    from tests.servers.process import servers as makers_of  # noqa: PLC0415

    created: list[Server] = []
    by_name = makers_of(root)

    def keep(name: str) -> Callable[[], Server]:
        def make() -> Server:
            created.append(server := by_name[name]())
            return server

        return make

    try:
        yield {name: keep(name) for name in by_name}
    finally:
        for server in reversed(created):
            server.kill()
