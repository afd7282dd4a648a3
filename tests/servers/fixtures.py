"""Where tests get their real servers from: ``--servers=process`` or ``--servers=container``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import container
from tests.servers.server import Server

Makers = dict[str, Callable[[], Server]]


@pytest.fixture
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Makers]:
    """How to make each server, by name, of the kind that was asked for; all gone afterwards."""
    if request.config.getoption("--servers") == "container":
        if reason := container.why_not():
            pytest.skip(reason)
        kind = container.servers()
    else:
        kind = _processes(tmp_path)
    with kind as makers:
        yield makers


@contextmanager
def _processes(root: Path) -> Iterator[Makers]:
    # Imported here: a run on containers needs none of the embedded stack's jars.
    from tests.servers.process import servers as makers_of  # noqa: PLC0415

    made: list[Server] = []
    makers = makers_of(root)

    def keep(name: str) -> Callable[[], Server]:
        def make() -> Server:
            made.append(server := makers[name]())
            return server

        return make

    try:
        yield {name: keep(name) for name in makers}
    finally:
        for server in reversed(made):
            server.kill()
