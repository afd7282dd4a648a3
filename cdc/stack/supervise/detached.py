"""Starts a supervisor in its own session for ``up --detach``, and stops it for ``down``."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import prerequisites
from cdc.stack.artifacts.install import install
from cdc.stack.process import cleanup, stack_report
from cdc.stack.process.log_files import rotate
from cdc.stack.process.process import STATE_VARIABLE, last_lines
from cdc.stack.servers import server_plan
from cdc.stack.supervise.supervisor import ends_on_signal
from cdc.state.directory import StateDir
from cdc.waiting import poll

_UP_SECONDS = 900
_STOP_SECONDS = 150

OnProgress = Callable[[str], None]


def up(
    config: Config, config_path: Path, on_progress: OnProgress, options: Sequence[str] = ()
) -> None:
    """Start a supervisor in the background, with these options, and return once it is ready.

    Raises CONFLICT if one already runs for this state directory, TIMEOUT if it is not ready after
    ``_UP_SECONDS``, and the error it reported if its start failed.
    """
    state = StateDir(config.state_dir.resolve())
    prerequisites.check(state.root)
    state.create()
    if stack_report.supervisor(state):
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the stack in {state.root} is already up",
            remedy="run wal2lake down, or choose another state_dir",
        )
    # Not in the supervisor: only this process has a terminal for the progress bar.
    install(server_plan.needed_sets(config))
    rotate(state.log("supervisor"))
    log_start = _size(state.log("supervisor"))
    with ends_on_signal():
        child = _spawn(state, command(config_path, options))
        try:
            _await(child, _ReportReader(state, child.pid, on_progress, log_start))
        except BaseException:
            child.terminate()
            child.wait(_STOP_SECONDS)
            raise


def command(config_path: Path, options: Sequence[str] = ()) -> list[str]:
    """Return the supervisor's command line."""
    arguments = ("up", "--supervise", "--config", str(config_path))
    return [sys.executable, "-m", "cdc", *arguments, *options]


def _spawn(state: StateDir, arguments: list[str]) -> subprocess.Popen[bytes]:
    with state.log("supervisor").open("ab") as log:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, STATE_VARIABLE: str(state.root)},
            start_new_session=True,
        )


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


class _ReportReader:
    """Reads the report of one supervisor and passes on its new events."""

    def __init__(self, state: StateDir, pid: int, on_progress: OnProgress, log_start: int) -> None:
        self.state = state
        self._pid = pid
        self._events_read = 0
        self._on_progress = on_progress
        self.log_start = log_start  # bytes of the log file that earlier supervisors wrote

    def phase(self) -> str:
        """Pass on new events and return the supervisor's phase."""
        latest = stack_report.read(self.state)
        if latest.get("supervisor", {}).get("pid") != self._pid:
            return stack_report.STARTING  # the report is still that of an earlier supervisor
        for event in latest["events"][self._events_read :]:
            self._on_progress(event["what"])
        self._events_read = len(latest["events"])
        return str(latest["phase"])


def _await(child: subprocess.Popen[bytes], reader: _ReportReader) -> None:
    def settled() -> bool:
        return child.poll() is not None or reader.phase() == stack_report.READY

    if not poll(settled, bool, every=0.2, seconds=_UP_SECONDS):
        raise CdcError(ErrorKind.TIMEOUT, f"the stack is not ready after {_UP_SECONDS} s")
    if child.poll() is not None:
        raise _end_of(child, reader)


def _end_of(child: subprocess.Popen[bytes], reader: _ReportReader) -> CdcError:
    failed = reader.phase() == stack_report.FAILED
    error = stack_report.reported_error(reader.state) if failed else None
    log = reader.state.log("supervisor")
    return error or CdcError(
        ErrorKind.SERVER_FAILED,
        f"the supervisor ended with exit code {child.returncode}",
        detail=last_lines(log, after=reader.log_start),
        remedy=f"see the full log: {log}",
    )


def down(config: Config) -> list[str]:
    """Stop the supervisor with everything it runs, or what a killed one left behind.

    Returns the names of the processes that were stopped.
    """
    state = StateDir(config.state_dir.resolve())
    stopped = []
    running = stack_report.supervisor(state)
    if running and (process := running.process()):
        stopped.append("supervisor")
        _stop(process)
    return stopped + cleanup.clean(state)


def _stop(process: psutil.Process) -> None:
    try:
        process.terminate()
        process.wait(_STOP_SECONDS)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        process.kill()
