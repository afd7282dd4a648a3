"""A stack for all tests, in the order of the files; it begins with nothing and ends as nothing."""

from collections.abc import Iterator

import pytest

from tests.containers.stack import Stack, stack_for


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield a stack that is not up yet."""
    with stack_for("wal2lake-test", tmp_path_factory.mktemp("stack")) as found:
        yield found
