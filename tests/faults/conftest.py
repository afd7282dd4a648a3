"""Fixtures: an installation with a bank, whose job is killed repeatedly; and a time budget."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.bank.armed import Armed, job_of
from tests.faults.bank.bank import SQL
from tests.faults.bank.marts import define
from tests.faults.bank.walk import Walk
from tests.faults.scenes.budget import Budget, Case, shuffled
from tests.local_spark import QUICK
from tests.seeds import seed_of
from tests.servers.fixtures import started

PATTERNS = ["bank.*", "gone.*"]
BUDGET = pytest.StashKey[Budget]()


def _case(item: pytest.Item) -> Case:
    file, _, test = item.nodeid.partition("::")
    return file, test.partition("[")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    minutes = config.getoption("--budget")
    if minutes is None:
        return
    seed = seed_of(config)
    sys.stdout.write(
        f"\n{minutes:g} minutes, seed {seed}: --seed {seed} runs the cases in this order\n"
    )
    items[:] = shuffled(items, _case, seed)
    files = list(dict.fromkeys(_case(item)[0] for item in items))
    config.stash[BUDGET] = Budget(minutes * 60, files, time.monotonic)


@pytest.hookimpl(tryfirst=True)  # before the test's servers start
def pytest_runtest_setup(item: pytest.Item) -> None:
    budget = item.config.stash.get(BUDGET, None)
    if budget is not None and not budget.has_room(_case(item)[0]):
        pytest.skip("beyond the budget: another seed runs other cases")


@contextmanager
def written(
    request: pytest.FixtureRequest,
    root: Path,
    patterns: list[str] = PATTERNS,
    conf: Mapping[str, str] = QUICK,
) -> Iterator[Armed]:
    """Yield an installation with a source, not up yet; assert that nothing runs afterwards."""
    with started(request, root / "servers", ("postgres",)) as servers:
        bank = Armed.of(
            root / "lakehouse", servers["postgres"], patterns, job=job_of(request.config)
        )
        bank.configure(lambda written: written["spark"].update(conf=dict(conf)))
        bank.execute(SQL)
        try:
            yield bank
        finally:
            bank.run("down")
            assert bank.processes() == []


@pytest.fixture(scope="package")
def bank(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Armed]:
    with written(request, tmp_path_factory.mktemp("faults")) as installation:
        define(installation)
        installation.run("up", "--detach")
        installation.sync()
        yield installation


@pytest.fixture
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    with written(request, tmp_path) as bank:
        yield bank


@pytest.fixture(scope="package")
def walk(bank: Armed) -> Iterator[Walk]:
    """Yield one walk for all tests; print its summary at the end."""
    one = Walk(bank)
    yield one
    sys.stdout.write(f"\n{one.summary}\n")
