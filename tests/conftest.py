"""Options and the plugin list; fixtures are defined next to what they start."""

import signal
from typing import Any

import pytest

from tests.scopes import place_of, scope_of

pytest_plugins = ["tests.servers.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("wal2lake")
    group.addoption(
        "--servers",
        choices=("process", "container"),
        default="process",
        help="where the real servers run: local processes, or containers (needs a Docker engine)",
    )
    group.addoption(
        "--deep",
        action="store_true",
        help="run what takes long too: many more examples, and the tests marked deep",
    )
    group.addoption("--seed", type=int, default=None, help="seed of random changes and kills")
    group.addoption("--kills", type=int, default=10, help="random kills of the servers and the job")
    group.addoption(
        "--merge-alone",
        action="store_true",
        help="tests/faults: let Spark's MERGE apply every batch (job.local_events is 0)",
    )
    group.addoption("--budget", type=float, default=None, help="minutes for tests/faults")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:  # noqa: ANN401
    """Give each scope to one worker, if tests are distributed by scope."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - installed only where tests run in parallel

    class ByScope(LoadScopeScheduling):  # type: ignore[misc] # xdist is untyped
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return ByScope(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one of several workers
        items.sort(key=lambda item: place_of(item.nodeid))
    if not config.getoption("--deep"):
        for item in items:
            if item.get_closest_marker("deep"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: --deep"))


def pytest_configure(config: pytest.Config) -> None:
    # On SIGTERM a run stops the servers it has started, as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Imported here: a run of one integration test need not pay for hypothesis.
    from hypothesis import settings  # noqa: PLC0415

    settings.register_profile("quick", deadline=None, print_blob=True)
    settings.register_profile("deep", deadline=None, print_blob=True, max_examples=5_000)
    settings.load_profile("deep" if config.getoption("--deep") else "quick")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Report a failure also where the tests are interrupted after it."""
    if exitstatus == pytest.ExitCode.INTERRUPTED and session.testsfailed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
