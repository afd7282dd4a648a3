"""Options of the soak test; they are there only where ``tests/soak`` is named."""

import pytest

_OTHERS = 3600.0  # start, snapshot, sync and verify, at the very most


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("wal2lake soak")
    group.addoption("--sql", action="append", default=[], help="a database, as pg_dump writes it")
    group.addoption("--minutes", type=float, default=5.0, help="how long it is changed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    minutes = config.getoption("--minutes", default=5.0)
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(minutes * 60 + _OTHERS))
