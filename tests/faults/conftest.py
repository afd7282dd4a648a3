"""One installation with a bank, whose job is killed again and again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.armed import Armed
from tests.faults.bank import SQL
from tests.faults.walk import Walk
from tests.servers.fixtures import started

PATTERNS = ["bank.*", "gone.*"]


@contextmanager
def written(
    request: pytest.FixtureRequest, root: Path, patterns: list[str] = PATTERNS
) -> Iterator[Armed]:
    """The source is there, and nothing is up; nothing is left running afterwards."""
    with started(request, root / "servers", ("postgres",)) as servers:
        found = Armed.of(root / "lakehouse", servers["postgres"], patterns)
        found.execute(SQL)
        try:
            yield found
        finally:
            found.run("down")
            assert found.processes() == []


@pytest.fixture(scope="package")
def bank(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Armed]:
    with written(request, tmp_path_factory.mktemp("faults")) as found:
        found.run("up", "--detach")
        found.sync()
        yield found


@pytest.fixture
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    with written(request, tmp_path) as found:
        yield found


@pytest.fixture(scope="package")
def walk(bank: Armed) -> Iterator[Walk]:
    """Goes on over all tests; says at the end how far it came."""
    found = Walk(bank)
    yield found
    sys.stdout.write(f"\n{found.told}\n")
