"""A whole pipeline whose lake is in an object store that fails all the while, and is killed."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, QueryBuilder

from cdc.config import load
from cdc.errors import CdcError, Reason
from cdc.lake import lock
from cdc.lake.files.requests import again
from cdc.lake.files.s3_access import bucket_store, place_of
from tests.derived.conftest import define
from tests.derived.test_derived import LATE
from tests.e2e.installation import TABLES_SQL, Installation
from tests.e2e.workload import Workload
from tests.objects.faults import Fault, share
from tests.objects.server import KEY_ID, SECRET, TOKEN, ObjectServer
from tests.servers.fixtures import started
from tests.unpublished import unseen
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
        installed = patient(Installation.write(root / "lakehouse", servers, {}, running.lake()))
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


def patient(installation: Installation) -> Installation:
    """Have each cut wait for its derived tables, on any machine."""
    file = installation.folder / "wal2lake.yaml"
    written = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**written, "derived": {"seconds": 300}}))
    return installation


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


def test_a_table_is_read_again_and_replayed_in_the_store(installation: Installation) -> None:
    """A row that reached no log is found by reading, and is in what a replay makes."""
    missed = "INSERT INTO bank.victim VALUES (1000, 'unseen')"
    installation.execute(unseen("bank.victim", missed))
    installation.execute("UPDATE bank.victim SET value = 'later' WHERE id < 10")
    installation.run("sync")
    assert installation.source_rows("victim") - installation.lake_rows("victim")

    installation.run("resnapshot", "bank.victim")
    installation.assert_equal("victim")
    version = installation.table("bank", "victim").version()
    installation.run("replay", "bank.victim")
    installation.execute("DELETE FROM bank.victim WHERE id > 90")
    installation.run("sync")

    installation.assert_equal("victim")
    assert installation.table("bank", "victim").version() > version
    readings = installation.lake_query("_wal2lake", "readings", "SELECT path FROM t")
    assert any("/_wal2lake/read/bank/victim/" in path for (path,) in readings)


@pytest.mark.deep
def test_a_table_is_rebuilt_beside_the_lake(installation: Installation) -> None:
    copy = f"{installation.lake_place}-copy/victim"
    installation.run("sync")

    installation.run("replay", "bank.victim", "--into", copy.replace("s3a:", "s3:"))

    opened = QueryBuilder().register("t", DeltaTable(copy)).execute("SELECT id, value FROM t")
    rows = pa.table(opened.read_all()).to_pylist()
    assert Counter((row["id"], row["value"]) for row in rows) == installation.source_rows("victim")
    assert "exists already" in installation.run("replay", "bank.victim", "--into", copy, expect=2)


@pytest.mark.deep
def test_a_derived_table_with_late_rows_is_kept_and_dropped_in_the_store(
    installation: Installation,
) -> None:
    define(installation, {"marts.late": LATE.format(policy="keep")})
    with Workload(installation.source_url, seed=5) as workload:
        workload.await_commits(60)
    installation.run("sync", "--timeout", "900")
    installation.execute("UPDATE bank.moves SET at = at - interval '1 year' WHERE id % 7 = 0")
    installation.run("sync", "--timeout", "900")

    assert installation.facts("derived", "verify", "marts.late", "--source")["equal"]
    late = installation.facts("derived", "late", "marts.late")["rows"]
    assert sum(row["_op"] == "u" for row in late) == _old_moves(installation)
    (installation.folder / "derived" / "marts.late.sql").unlink()
    installation.run("apply-config")
    installation.run("sync", "--timeout", "900")
    installation.run("derived", "drop", "marts.late", "--confirm", "marts.late")
    assert _objects(installation.lake_place, "marts/late/") == []


def _old_moves(installation: Installation) -> int:
    with installation.connect() as connection:
        counted = connection.execute(
            "SELECT count(*) FROM bank.moves WHERE at < now() - interval '300 days'"
        ).fetchone()
    assert counted is not None
    return int(counted[0])


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
    found = list[tuple[str, bytes]]()
    for name in (one["path"] for one in listed):
        with suppress(FileNotFoundError):  # the job deletes files meanwhile
            read = partial(lambda key: bytes(obstore.get(bucket, key).bytes()), name)
            found.append((name, again(read, name)))
    return found
