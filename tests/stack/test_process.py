"""Child processes end with everything they started, even if they resist."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cdc.stack.process import cleanup
from cdc.stack.process.process import STATE_VARIABLE, Command, Process, ProcessIdentity, last_lines
from cdc.state.directory import StateDir
from tests.waiting import until

# A child that stays until a test ends it; if the test fails to, it ends by itself.
SLEEP = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); "
PARENT = (
    "import subprocess, sys, time; "
    f"child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); "
    "print(child.pid, flush=True); time.sleep(600)"
)


def command(code: str, **options: float) -> Command:
    arguments = (sys.executable, "-u", "-c", code)
    return Command(arguments=arguments, directory=Path("/"), **options)  # type: ignore[arg-type]


def child_of(process: Process) -> psutil.Process:
    until(lambda: last_lines(process.log).strip().isdigit())
    return psutil.Process(int(last_lines(process.log)))


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_stop_ends_a_process_and_its_children(state: StateDir) -> None:
    process = Process("parent", command(PARENT), state)
    child = child_of(process)
    process.stop()
    assert process.exit_code() == -signal.SIGTERM
    assert gone(child)
    assert list(state.run.glob("*.json")) == []


def test_a_process_that_ignores_sigterm_is_killed(state: StateDir) -> None:
    process = Process("deaf", command(STUBBORN + SLEEP, stop_seconds=0.2), state)
    until(lambda: "deaf" in last_lines(process.log))
    process.stop()
    assert process.exit_code() == -signal.SIGKILL


def test_the_child_of_a_killed_process_is_ended(state: StateDir) -> None:
    process = Process("parent", command(PARENT), state)
    child = child_of(process)
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: process.exit_code() is not None)
    assert not gone(child)
    process.sweep()
    assert gone(child)


def test_a_failure_has_the_end_of_the_log(state: StateDir) -> None:
    process = Process("noisy", command("print('first'); print('it broke'); exit(3)"), state)
    until(lambda: process.exit_code() is not None)
    error = process.failure("died")
    assert "it broke" in error.detail
    assert str(process.log) in error.remedy


def test_stack_frames_do_not_hide_the_reason(tmp_path: Path) -> None:
    frames = [f"\tat java.base/java.Frame.{i}(Frame.java:{i})" for i in range(200)]
    log = tmp_path / "java.log"
    log.write_text("\n".join(["java.io.IOException: no lake", *frames, "\t... 17 more", ""]))
    assert last_lines(log) == "java.io.IOException: no lake"


def test_the_statements_of_a_source_s_sessions_are_not_passed_on(tmp_path: Path) -> None:
    start = "2026-01-01 00:00:00.000 UTC [7]"
    log = tmp_path / "postgres.log"
    said = [
        f"{start} LOG:  starting PostgreSQL",
        f'{start} ERROR:  invalid input syntax for type integer: "canary"',
        f"{start} DETAIL:  Key (id)=(canary) already exists.",
        f"{start} CONTEXT:  COPY t, line 1, column id: canary",
        f"{start} STATEMENT:  insert into t values",
        "\t('canary')",
        f"{start} FATAL:  could not open file",
    ]
    log.write_text("\n".join(said))
    assert last_lines(log) == "\n".join((said[0], said[-1]))


def test_a_process_with_a_reused_pid_is_not_ours(tmp_path: Path) -> None:
    identity = ProcessIdentity.of(os.getpid())
    identity.write(tmp_path / "record.json")
    assert ProcessIdentity.read(tmp_path / "record.json") == identity
    assert identity.process() is not None
    assert ProcessIdentity(pid=identity.pid, create_time=identity.create_time - 5).process() is None


@pytest.fixture
def orphan(state: StateDir) -> int:
    """Start what a killed supervisor leaves: a marked process without parent or record."""
    code = (
        "import subprocess, sys; "
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True, "
        "stdout=subprocess.DEVNULL); print(child.pid)"
    )
    environment = {**os.environ, STATE_VARIABLE: str(state.root)}
    return int(subprocess.check_output([sys.executable, "-c", code], env=environment))


def test_cleaning_finds_orphans_by_their_mark(state: StateDir, orphan: int) -> None:
    assert [process.pid for process in cleanup.leftovers(state)] == [orphan]
    assert len(cleanup.clean(state)) == 1
    assert cleanup.leftovers(state) == []
    assert cleanup.clean(state) == []


def test_cleaning_finds_recorded_processes_that_hide_their_mark(state: StateDir) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as plain:
        process = psutil.Process(plain.pid)
        ProcessIdentity.of(plain.pid).write(state.run / "postgres.json")
        assert len(cleanup.clean(state)) == 1
        assert gone(process)


def test_another_state_directory_is_left_alone(
    state: StateDir, orphan: int, tmp_path: Path
) -> None:
    other = StateDir(tmp_path / "other")
    other.create()
    assert cleanup.clean(other) == []
    assert psutil.pid_exists(orphan)
    cleanup.clean(state)
