"""A job that is moved, and one whose store is gone for a while."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.derived.conftest import write
from tests.derived.test_derived import LATE
from tests.e2e.installation import TABLES_SQL, Installation
from tests.e2e.workload import Workload
from tests.objects.faults import Fault, share
from tests.objects.server import ObjectServer
from tests.objects.test_pipeline import patient
from tests.servers.fixtures import started
from tests.servers.server import Server
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(1800)]

DEFINED: Final = {
    "marts.owners": "SELECT owner, count(*) AS n, sum(balance) AS balance FROM bank.accounts "
    "GROUP BY owner",
    "marts.late": LATE.format(policy="keep"),
}
SECONDS: Final = 600
UNREACHABLE: Final = "error: the object store of the lake does not do what is asked"


@pytest.fixture(scope="module")
def outside(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Server]]:
    """Yield what is on no machine of the job's: the source, and Kafka."""
    root = tmp_path_factory.mktemp("outside")
    with started(request, root, ("postgres", "kafka")) as servers:
        yield servers


@pytest.fixture(scope="module")
def moved(
    outside: Mapping[str, Server], running: ObjectServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Yield an installation that goes on with what another has left, which was killed whole."""
    root, lake = tmp_path_factory.mktemp("machines"), running.lake()
    first = _installation(root / "first", outside, lake)
    first.execute(TABLES_SQL + "CREATE SCHEMA lab; CREATE TABLE lab.one (id int PRIMARY KEY)")
    first.run("up", "--detach")
    first.run("sync", "--timeout", str(SECONDS))
    with Workload(first.source_url, seed=31) as workload:
        workload.await_commits(200)
        _kill_all(first)
        shutil.rmtree(first.state_dir)
        workload.await_commits(100)
        second = _installation(root / "second", outside, lake)
        second.run("up", "--detach")
        workload.await_commits(200)
    try:
        yield second
    finally:
        running.faults.heal()
        second.run("down")
        assert (first.processes(), second.processes()) == ([], [])


def _installation(folder: Path, servers: Mapping[str, Server], lake: str) -> Installation:
    installed = patient(Installation.write(folder, servers, {}, lake))
    write(installed, DEFINED)
    return installed


def _kill_all(installation: Installation) -> None:
    """Kill every process of an installation at once, as a machine that loses its power does."""
    marker = str(installation.state_dir)
    running = [process for process in psutil.process_iter() if _is_of(process, marker)]
    for process in running:
        process.suspend()  # nobody may notice the end of another
    for process in running:
        process.kill()
    psutil.wait_procs(running)


def _is_of(process: psutil.Process, marker: str) -> bool:
    try:
        told = [*process.cmdline(), *process.environ().values()]
    except psutil.Error:
        return False
    return process != psutil.Process() and any(marker in text for text in told)


def _assert_equal(installation: Installation) -> None:
    installation.run("sync", "--timeout", str(SECONDS))
    assert "equal" in installation.run("verify")
    installation.assert_equal()
    verified = installation.facts("derived", "verify", "--source")
    assert verified["equal"], verified


def test_a_job_goes_on_on_another_machine_with_lake_kafka_and_source_alone(
    moved: Installation,
) -> None:
    _assert_equal(moved)
    assert moved.facts("derived", "verify")["equal"]


def test_a_job_whose_store_is_gone_for_a_while_goes_on(
    moved: Installation, running: ObjectServer
) -> None:
    before = moved.pid("job")
    with Workload(moved.source_url, seed=32) as workload:
        workload.await_commits(50)
        running.faults.follow(share(1, {Fault.GONE: 1.0}))
        until(lambda: _errors(moved), SECONDS)
        workload.await_commits(50)
        running.faults.heal()
        until(lambda: moved.facts("status")["job"]["state"] == "applying", SECONDS)
        workload.await_commits(100)

    assert moved.pid("job") != before
    _assert_equal(moved)
    assert all(line.startswith(UNREACHABLE) for line in _errors(moved))


def _errors(installation: Installation) -> list[str]:
    """Return with what the job has ended, each time."""
    log = (installation.state_dir / "logs" / "job.log").read_text()
    return [line for line in log.splitlines() if line.startswith("error: ")]
