"""Provides a lake of orders and people."""

from pathlib import Path

import pytest

from tests.unit.derive.orders import ORDERS, PEOPLE
from tests.unit.derive.small_lake import SmallLake


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, {"orders": ORDERS, "people": PEOPLE})
