"""Each part that a pipeline remembers itself by is corrupted: found out, named, put right.

Afterwards the lake equals the source, by ``verify`` and by a reader that knows nothing of it.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cdc.errors import Reason
from tests.e2e.installation import Installation
from tests.faults.bank.bank import at_work
from tests.faults.conftest import written
from tests.faults.scenes.corruptions import (
    AT_THE_START,
    BEHIND,
    MEANWHILE,
    NEW_EPOCH,
    OF_TABLES,
    TABLES,
    Vault,
)
from tests.servers.fixtures import on_containers
from tests.servers.process import ProcessServer
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

FOUND_OUT_SECONDS = 300
SAMPLE = "edited"


@pytest.fixture(scope="module")
def vault(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Vault]:
    if on_containers(request):
        pytest.skip("the directory of the source's cluster is in a container")
    root = tmp_path_factory.mktemp("vault")
    patterns = [f"bank.{table}" for table in TABLES]
    with written(request, root, patterns) as bank:
        server = bank.servers["postgres"]
        assert isinstance(server, ProcessServer)
        cluster, backup = server.state.data("postgres"), root / "backup"
        server.stop()
        subprocess.run(["cp", "-a", str(cluster), str(backup)], check=True)
        server.start()
        bank.run("up", "--detach")
        bank.sync()
        yield Vault(bank, backup)


def worked(vault: Vault) -> None:
    """Transactions that the lake has."""
    with at_work(vault.bank, {}, seed=5):
        vault.bank.sync()
    vault.bank.sync()


def refused(vault: Vault, reason: Reason) -> None:
    """The next start ends with the code, and leaves nothing up."""
    said = vault.bank.run("up", "--detach", expect=12)
    told = [line for line in said.splitlines() if line.startswith(("error:", "remedy:"))]
    sys.stdout.write("\n".join(["", *told, ""]))
    assert f"error: [{reason.value}] " in said


def remedied(vault: Vault, commands: tuple[str, ...]) -> None:
    for command in commands:
        sys.stdout.write(f"$ wal2lake {command}\n")
        vault.bank.run(*command.split())
    worked(vault)
    Installation.assert_equal(vault.bank, *TABLES)
    assert vault.bank.facts("verify")["equal"]
    sys.stdout.write("verify: equal\n")


def job_ended(vault: Vault, reason: Reason) -> bool:
    servers = vault.bank.facts("status")["servers"]
    (job,) = [server for server in servers if server["name"] == "job"]
    return job["state"] == "failed" and f"[{reason.value}] " in job["reason"]


def stopped(vault: Vault, reason: Reason) -> list[str]:
    tables = vault.bank.facts("status")["tables"]
    return [
        f"{table['table']}: {table['reason']}"
        for table in tables
        if table["state"] == "stopped" and f"[{reason.value}] " in table["reason"]
    ]


@pytest.mark.deep
@pytest.mark.parametrize("name", AT_THE_START)
def test_found_out_by_the_next_start(vault: Vault, name: str) -> None:
    worked(vault)
    vault.bank.run("down")
    AT_THE_START[name].do(vault)

    refused(vault, AT_THE_START[name].reason)
    remedied(vault, NEW_EPOCH)


@pytest.mark.deep
@pytest.mark.parametrize("name", BEHIND)
def test_found_out_by_the_next_start_where_it_was_done_before(vault: Vault, name: str) -> None:
    worked(vault)
    BEHIND[name].do(vault)
    vault.bank.run("down")

    refused(vault, BEHIND[name].reason)
    remedied(vault, NEW_EPOCH)


@pytest.mark.deep
@pytest.mark.parametrize("name", MEANWHILE)
def test_found_out_by_the_running_job(vault: Vault, name: str) -> None:
    case = MEANWHILE[name]
    worked(vault)
    with at_work(vault.bank, {}, seed=6):
        case.do(vault)
        until(lambda: job_ended(vault, case.reason), FOUND_OUT_SECONDS)
    vault.bank.run("down")

    refused(vault, case.reason)
    remedied(vault, NEW_EPOCH)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == SAMPLE else pytest.mark.deep) for name in OF_TABLES],
)
def test_a_table_stops(vault: Vault, name: str) -> None:
    case = OF_TABLES[name]
    worked(vault)
    with at_work(vault.bank, {}, seed=7):
        case.do(vault)
        until(lambda: stopped(vault, case.reason), FOUND_OUT_SECONDS)
    sys.stdout.write("\n".join(["", *stopped(vault, case.reason), ""]))

    remedied(vault, case.remedy)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["deleted", "truncated", "of yesterday"])
def test_a_checkpoint_is_not_relied_on(vault: Vault, how: str, tmp_path: Path) -> None:
    """The lake itself says where the log goes on."""
    checkpoints = vault.bank.state_dir / "checkpoints"
    worked(vault)
    shutil.copytree(checkpoints, tmp_path / "yesterday")
    worked(vault)
    vault.bank.run("down")
    shutil.rmtree(checkpoints)
    if how != "deleted":
        shutil.copytree(tmp_path / "yesterday", checkpoints)
    if how == "truncated":
        for file in checkpoints.glob("*/offsets/*"):
            file.write_text("")

    remedied(vault, ("up --detach",))


@pytest.mark.deep
def test_a_second_job_is_refused(vault: Vault) -> None:
    """By the lake, also where its state directory is its own."""
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
        timeout=FOUND_OUT_SECONDS,
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert f"error: [{Reason.SECOND_JOB.value}] another job is writing to the lake" in done.stderr
    remedied(vault, ())
