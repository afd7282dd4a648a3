"""Run every check under each scenario: the bank's promises hold before, during and after it."""

from collections.abc import Iterator

import pytest

from tests.faults.bank.checks import every_check
from tests.faults.scenes.scenarios import SCENARIOS
from tests.faults.scenes.scene import Scene, staged
from tests.servers.fixtures import on_containers

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    if on_containers(request):
        pytest.skip("processes are stopped, and disks filled, on this machine")
    with staged(request, tmp_path_factory.mktemp("scene")) as found:
        yield found


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_check_holds(scene: Scene, name: str) -> None:
    every_check(scene, name, SCENARIOS[name], seed=list(SCENARIOS).index(name))
