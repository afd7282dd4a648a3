"""Helm, as it is built from its module."""

from pathlib import Path
from typing import Final

import pytest

from tests.chart.rendered import Chart
from tools import go_programs

OPERATOR: Final = ("github.com/prometheus-operator/prometheus-operator", "0.85.0")


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Chart:
    """Return the chart; the first run of all builds Helm."""
    if (why := go_programs.why_none()) is not None:
        pytest.skip(f"the chart is not rendered: {why}")
    return Chart(go_programs.built(go_programs.HELM), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def operator() -> Path:
    """Return the folder with the definitions of the Prometheus operator's kinds."""
    if (why := go_programs.why_none()) is not None:
        pytest.skip(f"the operator's kinds are not checked: {why}")
    return go_programs.downloaded(*OPERATOR, "Dir") / "example" / "prometheus-operator-crd"
