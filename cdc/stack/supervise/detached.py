"""``up --detach`` and ``down``: a supervisor in a session of its own, and its end."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import prerequisites
from cdc.stack.artifacts.install import install
from cdc.stack.process import cleanup, report
from cdc.stack.process.log_files import rotate
from cdc.stack.process.process import STATE_VARIABLE, last_lines
from cdc.stack.servers import plan
from cdc.stack.supervise.supervisor import ends_on_signal
from cdc.state.directory import StateDir
from cdc.waiting import poll

_UP_SECONDS = 900
_STOP_SECONDS = 150

OnProgress = Callable[[str], None]


def up(
    config: Config, config_path: Path, on_progress: OnProgress, *, new_epoch: bool = False
) -> None:
    """Start a supervisor and return when it is ready; raises the error that it reported."""
    state = StateDir(config.state_dir.resolve())
    prerequisites.check(state.root)
    state.create()
    if report.supervisor(state):
        raise CdcError(
            ErrorKind.CONFLICT,
            f"the stack in {state.root} is already up",
            remedy="wal2lake down, or choose another state_dir",
        )
    # Here and not in the supervisor: this process has the terminal for the progress bar.
    install(plan.needed_sets(config))
    rotate(state.log("supervisor"))
    began = _size(state.log("supervisor"))
    with ends_on_signal():
        child = _spawn(state, command(config_path, new_epoch=new_epoch))
        try:
            _await(child, _Telling(state, child.pid, on_progress, began))
        except BaseException:
            child.terminate()
            child.wait(_STOP_SECONDS)
            raise


def command(config_path: Path, *, new_epoch: bool) -> list[str]:
    """The supervisor's command line."""
    arguments = ["up", "--supervise", "--config", str(config_path)]
    return [sys.executable, "-m", "cdc", *arguments, *["--new-epoch"] * new_epoch]


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


class _Telling:
    """Reads the report of one supervisor and passes on what is new in it."""

    def __init__(self, state: StateDir, pid: int, on_progress: OnProgress, began: int) -> None:
        self.state = state
        self._pid = pid
        self._told = 0
        self._on_progress = on_progress
        self.began = began  # bytes of the log file that are of supervisors before

    def phase(self) -> str:
        said = report.read(self.state)
        if said.get("supervisor", {}).get("pid") != self._pid:
            return report.STARTING  # an older one's report
        for event in said["events"][self._told :]:
            self._on_progress(event["what"])
        self._told = len(said["events"])
        return str(said["phase"])


def _await(child: subprocess.Popen[bytes], telling: _Telling) -> None:
    def settled() -> bool:
        return child.poll() is not None or telling.phase() == report.READY

    if not poll(settled, bool, every=0.2, seconds=_UP_SECONDS):
        raise CdcError(ErrorKind.TIMEOUT, f"not ready after {_UP_SECONDS} s")
    if child.poll() is not None:
        raise _end_of(child, telling)


def _end_of(child: subprocess.Popen[bytes], telling: _Telling) -> CdcError:
    failed = telling.phase() == report.FAILED
    error = report.reported_error(telling.state) if failed else None
    log = telling.state.log("supervisor")
    return error or CdcError(
        ErrorKind.SERVER_FAILED,
        f"the supervisor ended with exit code {child.returncode}",
        detail=last_lines(log, after=telling.began),
        remedy=f"the whole log is {log}",
    )


def down(config: Config) -> list[str]:
    """Stop the supervisor and all that it runs, or what is left of it; names what was ended."""
    state = StateDir(config.state_dir.resolve())
    ended = []
    running = report.supervisor(state)
    if running and (process := running.process()):
        ended.append("supervisor")
        _stop(process)
    return ended + cleanup.clean(state)


def _stop(process: psutil.Process) -> None:
    try:
        process.terminate()
        process.wait(_STOP_SECONDS)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        process.kill()
