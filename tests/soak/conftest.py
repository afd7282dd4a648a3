"""Options of the soak tests; pytest knows them only if ``tests/soak`` is named."""

import pytest

_OTHERS = 3600.0  # at most, for start, snapshot, sync and verify


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the soak tests' options."""
    group = parser.getgroup("wal2lake soak")
    group.addoption(
        "--sql", action="append", default=[], help="a database as SQL, as pg_dump writes it"
    )
    group.addoption("--minutes", type=float, default=5.0, help="how long to change the database")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the soak tests a timeout that fits ``--minutes``."""
    minutes = config.getoption("--minutes", default=5.0)
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(minutes * 60 + _OTHERS))
