"""Run every check while two parts lose each other: all servers run outside, behind proxies."""

from collections.abc import Iterator

import pytest

from tests.faults.bank.checks import every_check
from tests.faults.scenes.network import NETWORK
from tests.faults.scenes.outside import Outside, outside
from tests.faults.scenes.scene import Scene
from tests.servers.fixtures import on_containers

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]
Network = tuple[Scene, Outside]


@pytest.fixture(scope="module")
def network(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Network]:
    if on_containers(request):
        pytest.skip("the broker advertises proxies on this machine")
    with outside(request, tmp_path_factory.mktemp("network")) as pair:
        yield pair


@pytest.mark.parametrize("name", NETWORK)
def test_every_check_holds(network: Network, name: str) -> None:
    scene, servers = network
    assert servers.around() == []
    every_check(scene, name, NETWORK[name], seed=list(NETWORK).index(name))
