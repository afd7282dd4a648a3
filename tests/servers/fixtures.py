"""Where tests get their real servers from: ``--servers=process`` or ``--servers=container``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import container
from tests.servers.server import Server

Makers = Mapping[str, Callable[[], Server]]


@pytest.fixture
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Makers]:
    """How to make each server, by name, of the kind that was asked for; all gone afterwards."""
    with makers(request, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def source_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Of one Postgres per module: each test uses a schema and a pipeline name of its own."""
    yield from _address(request, tmp_path_factory, "postgres")


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a Kafka alone, one per module."""
    yield from _address(request, tmp_path_factory, "kafka")


def _address(
    request: pytest.FixtureRequest, folders: pytest.TempPathFactory, name: str
) -> Iterator[str]:
    with started(request, folders.mktemp(name), (name,)) as servers:
        yield servers[name].address


def on_containers(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--servers") == "container")


def worker_settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Keys of ``connect`` in the configuration: how a worker reaches servers of this kind."""
    return container.WORKER if on_containers(request) else {}


@contextmanager
def started(
    request: pytest.FixtureRequest, folder: Path, names: tuple[str, ...]
) -> Iterator[dict[str, Server]]:
    """Servers that belong together, up, in the order of the names; for fixtures of any scope."""
    with makers(request, folder) as made:
        found = {name: made[name]() for name in names}
        for server in found.values():
            server.start()
        yield found


@contextmanager
def makers(request: pytest.FixtureRequest, folder: Path) -> Iterator[Makers]:
    """How to make each server of the kind asked for; skips where that kind cannot run."""
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

    made: list[Server] = []
    by_name = makers_of(root)

    def keep(name: str) -> Callable[[], Server]:
        def make() -> Server:
            made.append(server := by_name[name]())
            return server

        return make

    try:
        yield {name: keep(name) for name in by_name}
    finally:
        for server in reversed(made):
            server.kill()
