"""Helm, as it is built from its module."""

from pathlib import Path

import pytest

from tests.chart.rendered import Chart
from tools.kubernetes import go_tools


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Chart:
    """Return the chart; the first run of all builds Helm."""
    if (why := go_tools.why_none()) is not None:
        pytest.skip(f"the chart is not rendered: {why}")
    return Chart(go_tools.helm(), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def operator() -> Path:
    """Return the folder with the definitions of the Prometheus operator's kinds."""
    if (why := go_tools.why_none()) is not None:
        pytest.skip(f"the operator's kinds are not checked: {why}")
    return go_tools.operator()
