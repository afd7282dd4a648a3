"""Run every check while the clock of one process is set back by hours and corrected again."""

from collections.abc import Iterator

import pytest

from tests.faults.bank.checks import every_check
from tests.faults.scenes.clock_jumps import JUMPS, clocked
from tests.faults.scenes.clocks import library
from tests.faults.scenes.scene import Scene
from tests.servers.fixtures import on_containers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.deep,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(library() is None, reason="libfaketime is not installed for this machine"),
]


@pytest.fixture(scope="module")
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    if on_containers(request):
        pytest.skip("only clocks of processes on this machine can be set")
    with clocked(request, tmp_path_factory.mktemp("clocks")) as found:
        yield found


@pytest.mark.parametrize("name", JUMPS)
def test_every_check_holds(scene: Scene, name: str) -> None:
    every_check(scene, name, JUMPS[name], seed=list(JUMPS).index(name))
