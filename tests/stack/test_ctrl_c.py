"""Ctrl-C at every stage of ``up`` ends it soon and leaves nothing behind.

A terminal signals everything in the foreground, so the tests signal a process group.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc.state.directory import StateDir
from tests.stack.conftest import ours
from tests.stack.test_up import create_table_when_asked
from tests.waiting import until

pytestmark = pytest.mark.e2e
INTERRUPTED = 130
FIRST = "starting job"
LATER = (
    "starting postgres",
    "kafka is ready",
    "starting registry",
    "starting connect",
    "connecting to the source",
    "waiting for a table",
    "opening the tables",
)


@contextmanager
def foreground(*arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command as a shell does in a terminal, in its own process group."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "cdc", *arguments],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def interrupt(process: subprocess.Popen[bytes], times: int) -> int:
    """Send SIGINT and return the exit code as a shell sees it, also if the signal ended it."""
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
    code = process.wait(200)
    return code if code >= 0 else 128 - code


@pytest.mark.parametrize("detach", [False, True], ids=["foreground", "detach"])
def test_ctrl_c_at_the_first_stage_leaves_nothing(
    config_file: Path, state: StateDir, *, detach: bool
) -> None:
    interrupted_at(FIRST, config_file, state, detach=detach, times=1)


@pytest.mark.deep  # each stage brings the stack up to there
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("detach", [False, True], ids=["foreground", "detach"])
@pytest.mark.parametrize("stage", [FIRST, *LATER])
def test_ctrl_c_at_every_stage_leaves_nothing(
    config_file: Path, state: StateDir, stage: str, *, detach: bool, times: int
) -> None:
    interrupted_at(stage, config_file, state, detach=detach, times=times)


def interrupted_at(
    stage: str, config_file: Path, state: StateDir, *, detach: bool, times: int
) -> None:
    log = config_file.parent / "up.log"
    helper = threading.Thread(target=create_table_when_asked, args=[state], daemon=True)
    if stage == "opening the tables":
        helper.start()
    arguments = ["up", "--config", str(config_file), *["--detach"] * detach]
    with foreground(*arguments, log=log) as up:
        until(lambda: stage in log.read_text() or up.poll() is not None, 300)
        assert up.poll() is None, log.read_text()
        code = interrupt(up, times)

    assert "Traceback" not in log.read_text()
    assert code == INTERRUPTED, log.read_text()
    assert ours(state) == []
    assert not state.endpoints_file.exists()


@pytest.mark.deep
def test_ctrl_c_after_the_start_is_an_ordinary_end(config_file: Path, state: StateDir) -> None:
    log = config_file.parent / "up.log"
    helper = threading.Thread(target=create_table_when_asked, args=[state], daemon=True)
    helper.start()
    with foreground("up", "--config", str(config_file), log=log) as up:
        until(lambda: "Ctrl-C stops everything" in log.read_text() or up.poll() is not None, 300)
        code = interrupt(up, 1)

    assert code == 0, log.read_text()
    assert ours(state) == []
