"""A whole pipeline whose lake is in an object store that fails all the while, and is killed."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import obstore
import pytest

from cdc.config import load
from cdc.errors import CdcError, Reason
from cdc.lake import lock
from cdc.lake.files.requests import again
from cdc.lake.files.s3_access import bucket_store, place_of
from tests.e2e.installation import TABLES_SQL, Installation
from tests.e2e.workload import Workload
from tests.objects.faults import Fault, share
from tests.objects.server import KEY_ID, SECRET, TOKEN, ObjectServer
from tests.servers.fixtures import started
from tests.waiting import until

pytestmark = pytest.mark.e2e

FAILING = share(11, {Fault.BUSY: 0.03, Fault.LOST: 0.01, Fault.LATE_BUSY: 0.01})
CANARIES = [text.encode() for text in (KEY_ID, SECRET, TOKEN)]


@pytest.fixture(scope="module")
def installation(
    request: pytest.FixtureRequest, running: ObjectServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    root = tmp_path_factory.mktemp("objects")
    running.faults.follow(FAILING)
    with started(request, root / "servers", ("postgres",)) as servers:
        installed = Installation.write(root / "lakehouse", servers, {}, running.lake())
        installed.execute(
            TABLES_SQL + "CREATE SCHEMA lab; CREATE TABLE lab.one (id int PRIMARY KEY)"
        )
        installed.run("up", "--detach")
        try:
            yield installed
        finally:
            installed.run("down")
            running.faults.heal()
            assert installed.processes() == []


def test_the_lake_is_equal_after_faults_and_a_kill(
    installation: Installation, running: ObjectServer
) -> None:
    before = installation.pid("job")
    with Workload(installation.source_url, seed=3) as workload:
        workload.await_commits(300)
        os.kill(before, signal.SIGKILL)
        workload.await_commits(300)
        until(lambda: installation.facts("status")["job"]["state"] == "applying", 300)
        workload.await_commits(300)
    assert installation.pid("job") != before
    installation.run("sync")

    assert "equal" in installation.run("verify")
    installation.assert_equal()
    assert set(running.faults.met) == {Fault.BUSY, Fault.LOST, Fault.LATE_BUSY}


def test_a_second_job_is_refused_and_told_who_holds_the_lake(
    installation: Installation, tmp_path: Path
) -> None:
    text = (installation.folder / "wal2lake.yaml").read_text()
    (tmp_path / "wal2lake.yaml").write_text(text)

    with (
        pytest.raises(CdcError, match="another job is writing to the lake s3a://") as raised,
        lock.only_job(load(tmp_path / "wal2lake.yaml", {})),
    ):
        pass

    assert raised.value.reason is Reason.SECOND_JOB
    assert f"process {installation.pid('job')} on " in raised.value.detail


def test_small_batches_are_committed_by_the_job_itself_and_large_ones_by_spark(
    installation: Installation,
) -> None:
    installation.execute("INSERT INTO bank.many SELECT i, i FROM generate_series(1, 60000) i")
    installation.run("sync")
    installation.execute("UPDATE bank.many SET v = v + 1 WHERE id % 1000 = 0")
    installation.run("sync")

    installation.assert_equal("many")
    entries = _objects(installation.lake_place, "bank/many/_delta_log/")
    engines = {
        b'"engineInfo":"wal2lake"' in text for name, text in entries if name.endswith(".json")
    }
    assert engines == {True, False}


def test_no_credential_is_in_any_file_or_object(installation: Installation) -> None:
    files = [path for path in installation.folder.rglob("*") if path.is_file()]
    found = [path for path in files if any(canary in path.read_bytes() for canary in CANARIES)]
    kept = [
        name
        for name, content in _objects(installation.lake_place, "")
        if any(canary in content for canary in CANARIES)
    ]

    assert (found, kept) == ([], [])
    assert any("logs" in path.parts for path in files)


def _objects(lake: str, below: str) -> list[tuple[str, bytes]]:
    """Return the objects of the lake; the test's own requests meet faults too."""
    place = place_of(lake)
    bucket = bucket_store(place.bucket)
    listed = again(lambda: obstore.list(bucket, place.key(below)).collect(), "list")
    names = [one["path"] for one in listed]
    return [
        (name, again(partial(lambda key: bytes(obstore.get(bucket, key).bytes()), name), name))
        for name in names
    ]
