"""A stack for all tests, in the order of the files; it begins with nothing and ends as nothing."""

from collections.abc import Iterator

import pytest

from tests.containers.stack import Stack
from tools.images import engine


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield a stack that is not up yet."""
    if not engine.answers():
        pytest.fail("no Docker engine answers: run make test-stack, which starts one")
    folder = tmp_path_factory.mktemp("stack")
    found = Stack(name="wal2lake-test", override=folder / "ports.yaml")
    found.compose("down", "--volumes", "--remove-orphans")
    try:
        yield found
    finally:
        (folder / "logs.txt").write_text(found.run("logs", "--no-color").stdout)
        found.run("cp", "job:/state/logs", str(folder / "logs"))  # for whoever looks into a failure
        found.compose("down", "--volumes", "--remove-orphans")
