"""Options and the plugin list; fixtures live beside what they start."""

from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
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
        help="many more examples in property tests: minutes instead of seconds",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, one of them runs all of a directory: its tests share their servers."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.relative_to(TESTS).parts[0]))


def pytest_configure(config: pytest.Config) -> None:
    # Imported here: a run of one integration test need not pay for hypothesis.
    from hypothesis import settings  # noqa: PLC0415

    settings.register_profile("quick", deadline=None, print_blob=True)
    settings.register_profile("deep", deadline=None, print_blob=True, max_examples=5_000)
    settings.load_profile("deep" if config.getoption("--deep") else "quick")
