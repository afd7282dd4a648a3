"""``up --detach`` and ``down`` on the command line, with the job."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from cdc.cli.up import without_password
from cdc.stack.process.stack_report import read
from cdc.state.directory import StateDir
from tests.stack.conftest import ours
from tests.waiting import until

pytestmark = pytest.mark.e2e


def wal2lake(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cdc", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def create_table_when_asked(state: StateDir) -> None:
    """Do what a person does who reads that ``up`` waits for a table."""
    until(lambda: any("waiting for a table" in said["what"] for said in events(state)), 300)
    url = json.loads(state.endpoints_file.read_text())["source_url"]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE first AS SELECT 1 AS id")
        connection.execute("ALTER TABLE first ADD PRIMARY KEY (id)")


def events(state: StateDir) -> list[dict[str, str]]:
    found: list[dict[str, str]] = read(state).get("events", [])
    return found


@pytest.mark.deep  # the fixtures of tests/e2e and tests/operations do the same
def test_up_returns_when_the_job_applies_and_down_leaves_nothing(
    config_file: Path, state: StateDir
) -> None:
    helper = threading.Thread(target=create_table_when_asked, args=[state])
    helper.start()
    up = wal2lake("up", "--detach", "--json", "--config", str(config_file))
    helper.join()
    assert up.returncode == 0, up.stderr
    facts = json.loads(up.stdout)
    password = (state.secrets / "postgres").read_text()
    assert password not in up.stdout + up.stderr
    assert facts["source"].startswith("postgresql://postgres@127.0.0.1:")
    job = json.loads(state.job_file.read_text())
    assert job["state"] == "applying"

    os.kill(job["pid"], signal.SIGKILL)
    until(lambda: any(said["what"] == "job is ready again" for said in events(state)), 300)
    assert json.loads(state.job_file.read_text())["pid"] != job["pid"]

    down = wal2lake("down", "--json", "--config", str(config_file))
    assert json.loads(down.stdout) == {"ended": ["supervisor"]}
    assert ours(state) == []
    assert not state.endpoints_file.exists()


def test_a_job_that_fails_to_start_is_reported_with_its_log(
    config_file: Path, state: StateDir
) -> None:
    with config_file.open("a") as file:
        file.write("spark: {master: nowhere}\n")
    helper = threading.Thread(target=create_table_when_asked, args=[state])
    helper.start()
    up = wal2lake("up", "--detach", "--config", str(config_file))
    helper.join()
    assert up.returncode == 11, up.stderr
    assert "job failed to start" in up.stderr
    assert "PySparkRuntimeError" in up.stderr  # the class, never the message
    assert str(state.log("job")) in up.stderr
    assert ours(state) == []


def test_a_url_is_shown_without_its_password() -> None:
    assert without_password("postgresql://me:s%40crt@db:5432/x") == "postgresql://me@db:5432/x"
    assert without_password("postgresql://db/x") == "postgresql://db/x"
    query = "sslmode=require&sslpassword=s3crt"
    assert without_password(f"postgresql://db/x?{query}") == "postgresql://db/x"
