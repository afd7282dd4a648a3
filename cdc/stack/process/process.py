"""One server or job as a child process: own session, log file, a record that outlives us."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cdc.errors import CdcError, ErrorKind
from cdc.stack.process.log_files import rotate
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json

STATE_VARIABLE = "WAL2LAKE_STATE"
"""In the environment of every process we start: how what a crash left behind is found."""

_TAIL_BYTES = 64 * 1024
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ (more|common))")
_OF_A_SESSION = re.compile(r"\t|.*\] (ERROR|DETAIL|CONTEXT|HINT|QUERY|STATEMENT):  ")
"""What Postgres writes of a statement that failed: it is the application's, with its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How a process is started and asked to stop."""

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A process id is reused; with the time of its creation it is not."""

    pid: int
    create_time: float

    @classmethod
    def of(cls, pid: int) -> "Identity":
        return cls(pid=pid, create_time=psutil.Process(pid).create_time())

    @classmethod
    def read(cls, path: Path) -> "Identity | None":
        record = read_json(path)
        return cls(pid=record["pid"], create_time=record["create_time"]) if record else None

    def write(self, path: Path) -> None:
        write_private(path, json.dumps({"pid": self.pid, "create_time": self.create_time}))

    def process(self) -> psutil.Process | None:
        """The process if it still runs; a zombie does not."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.create_time
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same and alive else None


class Process:
    """A started process; ``stop`` ends it and all that it started."""

    def __init__(self, name: str, command: Command, state: StateDir) -> None:
        self.name = name
        self.command = command
        self.log = state.log(name)
        self._record = state.run / f"{name}.json"
        self._popen = self._spawn(state)
        Identity.of(self._popen.pid).write(self._record)

    def _spawn(self, state: StateDir) -> subprocess.Popen[bytes]:
        rotate(self.log)
        marker = {STATE_VARIABLE: str(state.root)}
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self.command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.command.directory,
                env={**os.environ, **self.command.environment, **marker},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._popen.poll()

    def stop(self) -> None:
        """Ask it, wait, then kill; what it started and left is killed too."""
        if self.exit_code() is None:
            self._popen.send_signal(self.command.stop_signal)
            try:
                self._popen.wait(self.command.stop_seconds)
            except subprocess.TimeoutExpired:
                kill(descendants(self.pid))
                self._popen.kill()
                self._popen.wait()
        self.sweep()

    def sweep(self) -> None:
        """After its end: kill what outlived it, such as the JVM of a killed job."""
        kill(session(self.pid))
        self._record.unlink(missing_ok=True)

    def failure(self, what: str) -> CdcError:
        """The error for a death, with the end of the log."""
        return CdcError(
            ErrorKind.SERVER_FAILED,
            f"{self.name} {what}",
            detail=last_lines(self.log),
            remedy=f"the whole log is {self.log}",
        )


def descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def session(leader: int) -> list[psutil.Process]:
    """Processes of the session that ``leader`` founded, found also when it is gone itself."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue
    return found


def kill(processes: list[psutil.Process], seconds: float = 10) -> None:
    """KILL whatever of them still runs and wait until it is gone."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=seconds)


def last_lines(log: Path, count: int = 12, *, after: int = 0) -> str:
    """The end of a log without Java's stack frames, which push out the line that says why.

    Nor has it the statements of a source's sessions. ``after`` leaves out so many bytes at the
    beginning, which are of an earlier process.
    """
    try:
        with log.open("rb") as content:
            content.seek(max(after, log.stat().st_size - _TAIL_BYTES))
            text = content.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    passed_over = (_FRAME, _OF_A_SESSION)
    lines = [line for line in text.splitlines() if not any(p.match(line) for p in passed_over)]
    lines = [line for line in lines if line.strip()]
    return "\n".join(lines[-count:])
