"""Each request of each way to commit fails once: the table is what it is without a failure."""

import pytest

from tests.objects.commit_paths import PATHS, combining_often, content
from tests.objects.faults import HEALTHY, Fault, first
from tests.objects.server import ObjectServer

SAMPLE = Fault.LATE_BUSY
"""Without ``--deep`` the last request alone meets it."""
OTHERS = [pytest.param(f, marks=pytest.mark.deep) for f in (Fault.BUSY, Fault.LOST, Fault.GONE)]


@pytest.mark.parametrize("fault", [SAMPLE, *OTHERS])
@pytest.mark.parametrize("name", PATHS)
def test_a_work_of_which_any_request_fails_is_done_once(
    request: pytest.FixtureRequest, objects: ObjectServer, lake: str, name: str, fault: Fault
) -> None:
    way = PATHS[name]
    with combining_often():
        work = way.begin(f"{lake}/shop/healthy")
        objects.faults.follow(HEALTHY)
        work()
        asked = objects.faults.asked
        expected = content(f"{lake}/shop/healthy", way.columns)
        begin = 0 if request.config.getoption("--deep") else asked - 1
        for number in range(begin, asked):
            path = f"{lake}/shop/t{number}"
            work = way.begin(path)
            objects.faults.forget()
            objects.faults.follow(first(1, fault, skip=number))
            work()
            objects.faults.heal()
            assert objects.faults.met in ([fault], [])
            assert content(path, way.columns) == expected, f"request {number} of {asked}"
