"""Corrupt each piece of state a pipeline depends on: it is detected, named and repaired.

Afterwards the lake equals the source, by ``verify`` and by a reader independent of wal2lake.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from cdc.errors import Reason
from tests.e2e.installation import Installation
from tests.faults.bank.bank import at_work
from tests.faults.bank.marts import HISTORIES, assert_derived, define
from tests.faults.bank.recomputed import Recomputed
from tests.faults.bank.walk import query
from tests.faults.conftest import written
from tests.faults.scenes.corruptions import (
    AT_THE_START,
    BEHIND,
    MEANWHILE,
    NEW_EPOCH,
    OF_TABLES,
    TABLES,
    TAKEN_AGAIN,
    Corruption,
    Vault,
)
from tests.servers.fixtures import on_containers
from tests.servers.process import ProcessServer
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

DETECTION_SECONDS = 300
SAMPLE = "edited"


@contextmanager
def filled(
    request: pytest.FixtureRequest, root: Path, *, snapshot: str = "copy"
) -> Iterator[Vault]:
    """Yield an installation that is up and has its first snapshot."""
    if on_containers(request):
        pytest.skip("the directory of the source's cluster is in a container")
    patterns = [f"bank.{table}" for table in TABLES]
    with written(request, root, patterns) as bank:
        bank.configure(lambda found: found["source"].update(snapshot=snapshot))
        server = bank.servers["postgres"]
        assert isinstance(server, ProcessServer)
        cluster, backup = server.state.data("postgres"), root / "backup"
        server.stop()
        subprocess.run(["cp", "-a", str(cluster), str(backup)], check=True)
        server.start()
        define(bank, TABLES)
        bank.run("up", "--detach")
        bank.sync()
        yield Vault(bank, backup)


@pytest.fixture(scope="module")
def vault(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Vault]:
    with filled(request, tmp_path_factory.mktemp("vault")) as found:
        yield found


def work(vault: Vault) -> None:
    """Commit transactions and wait until the lake has them."""
    with at_work(vault.bank, {}, seed=5):
        vault.bank.sync()
    vault.bank.sync()


def assert_refused(vault: Vault, reason: Reason) -> None:
    """Assert that the next start fails with the reason code; print its error and remedy."""
    output = vault.bank.run("up", "--detach", expect=12)
    shown = [line for line in output.splitlines() if line.startswith(("error:", "remedy:"))]
    sys.stdout.write("\n".join(["", *shown, ""]))
    assert f"error: [{reason.value}] " in output


def assert_remedied(vault: Vault, commands: tuple[str, ...]) -> None:
    for command in commands:
        sys.stdout.write(f"$ wal2lake {command}\n")
        vault.bank.run(*command.split())
    work(vault)
    Installation.assert_equal(vault.bank, *TABLES)
    assert vault.bank.facts("verify")["equal"]
    assert_derived_again(vault)
    sys.stdout.write("verify: equal\n")


def assert_derived_again(vault: Vault) -> None:
    """Calculate the derived tables again, by ``verify`` and by plain DuckDB, at the newest cut."""
    assert_derived(vault.bank)
    rows = query(vault.bank, "_wal2lake/ledger", "SELECT * FROM t ORDER BY cut DESC LIMIT 1")
    again = Recomputed()
    again.judge(rows[0], {row["cut"]: row for row in rows})
    assert {"kept.pages", "kept.minutes", *HISTORIES} == again.names


def job_ended(vault: Vault, reason: Reason) -> bool:
    servers = vault.bank.facts("status")["servers"]
    (job,) = [server for server in servers if server["name"] == "job"]
    return job["state"] == "failed" and f"[{reason.value}] " in job["reason"]


def assert_stopped_and_remedied(vault: Vault, case: Corruption) -> None:
    work(vault)
    with at_work(vault.bank, {}, seed=7):
        case.do(vault)
        until(lambda: stops(vault, case.reason), DETECTION_SECONDS)
    sys.stdout.write("\n".join(["", *stops(vault, case.reason), ""]))

    assert_remedied(vault, case.remedy)


def stops(vault: Vault, reason: Reason) -> list[str]:
    tables = vault.bank.facts("status")["tables"]
    return [
        f"{table['table']}: {table['reason']}"
        for table in tables
        if table["state"] == "stopped" and f"[{reason.value}] " in table["reason"]
    ]


@pytest.mark.deep
@pytest.mark.parametrize("name", AT_THE_START)
def test_the_next_start_refuses_after_a_corruption_while_down(vault: Vault, name: str) -> None:
    work(vault)
    vault.bank.run("down")
    AT_THE_START[name].do(vault)

    assert_refused(vault, AT_THE_START[name].reason)
    assert_remedied(vault, NEW_EPOCH)


@pytest.mark.deep
@pytest.mark.parametrize("name", BEHIND)
def test_the_next_start_refuses_after_a_corruption_while_up(vault: Vault, name: str) -> None:
    work(vault)
    BEHIND[name].do(vault)
    vault.bank.run("down")

    assert_refused(vault, BEHIND[name].reason)
    assert_remedied(vault, NEW_EPOCH)


@pytest.mark.deep
@pytest.mark.parametrize("name", MEANWHILE)
def test_the_running_job_notices_it(vault: Vault, name: str) -> None:
    case = MEANWHILE[name]
    work(vault)
    with at_work(vault.bank, {}, seed=6):
        case.do(vault)
        until(lambda: job_ended(vault, case.reason), DETECTION_SECONDS)
    vault.bank.run("down")

    assert_refused(vault, case.reason)
    assert_remedied(vault, NEW_EPOCH)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == SAMPLE else pytest.mark.deep) for name in OF_TABLES],
)
def test_a_corrupted_table_stops_and_its_remedy_works(vault: Vault, name: str) -> None:
    assert_stopped_and_remedied(vault, OF_TABLES[name])


@pytest.mark.deep
def test_a_snapshot_of_the_connector_that_is_taken_again_stops_its_tables(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with filled(request, tmp_path, snapshot="connector") as vault:
        assert_stopped_and_remedied(vault, TAKEN_AGAIN)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["deleted", "truncated", "of yesterday"])
def test_a_checkpoint_is_not_relied_on(vault: Vault, how: str, tmp_path: Path) -> None:
    """The next offset comes from the lake, not from Spark's checkpoint."""
    checkpoints = vault.bank.state_dir / "checkpoints"
    work(vault)
    shutil.copytree(checkpoints, tmp_path / "yesterday")
    work(vault)
    vault.bank.run("down")
    shutil.rmtree(checkpoints)
    if how != "deleted":
        shutil.copytree(tmp_path / "yesterday", checkpoints)
    if how == "truncated":
        for file in checkpoints.glob("*/offsets/*"):
            file.write_text("")

    assert_remedied(vault, ("up --detach",))


@pytest.mark.deep
def test_a_second_job_is_refused(vault: Vault) -> None:
    """The lake refuses it even if it has a state directory of its own."""
    settings = yaml.safe_load(vault.bank.config_file.read_text())
    other = vault.bank.folder / "second.yaml"
    other.write_text(yaml.safe_dump({**settings, "state_dir": "second"}))
    (vault.bank.folder / "second").mkdir()
    shutil.copy(vault.bank.state_dir / "endpoints.json", vault.bank.folder / "second")
    command = [*vault.bank.command("run")[:-1], str(other)]
    done = subprocess.run(
        command,
        cwd=vault.bank.folder,
        env=vault.bank.environment,
        capture_output=True,
        text=True,
        timeout=DETECTION_SECONDS,
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert f"error: [{Reason.SECOND_JOB.value}] another job is writing to the lake" in done.stderr
    assert_remedied(vault, ())
