"""Where tests get their real servers from: ``--servers=process`` or ``--servers=container``."""

import pytest

from tests.servers import container


@pytest.fixture(scope="session")
def servers_kind(request: pytest.FixtureRequest) -> str:
    """``process`` or ``container``; skips where containers are asked for and cannot run."""
    kind = str(request.config.getoption("--servers"))
    if kind == "container" and (reason := container.why_not()):
        pytest.skip(reason)
    return kind
