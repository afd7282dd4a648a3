"""Runs a server or the job as a child process: own session, log file, a record that outlives us."""

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
from cdc.stack.artifacts.class_archive import MAKING_SECONDS, ClassArchive
from cdc.stack.process.log_files import rotate
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json

STATE_VARIABLE = "WAL2LAKE_STATE"
"""Set in the environment of every process we start, to find it again after a crash."""

_TAIL_BYTES = 64 * 1024
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ (more|common))")
_OF_A_SESSION = re.compile(r"\t|.*\] (ERROR|DETAIL|CONTEXT|HINT|QUERY|STATEMENT):  ")
"""Lines that Postgres logs for a failed statement: they contain values of the application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Describes how to start a process and how to ask it to stop."""

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 20
    archive: ClassArchive | None = None  # of a Java program

    @property
    def patience(self) -> float:
        """Return how many seconds the process has to stop: more if it then writes an archive."""
        making = self.archive is not None and self.archive.partial is not None
        return self.stop_seconds + (MAKING_SECONDS if making else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """Identifies a process by its id and creation time, because ids alone are reused."""

    pid: int
    create_time: float

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity":
        """Return the identity of a running process."""
        return cls(pid=pid, create_time=psutil.Process(pid).create_time())

    @classmethod
    def read(cls, path: Path) -> "ProcessIdentity | None":
        """Read a record that ``write`` made; None if there is none."""
        record = read_json(path)
        return cls(pid=record["pid"], create_time=record["create_time"]) if record else None

    def write(self, path: Path) -> None:
        """Write the record of this process."""
        write_private(path, json.dumps({"pid": self.pid, "create_time": self.create_time}))

    def process(self) -> psutil.Process | None:
        """Return the process, or None if it no longer runs or is a zombie."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.create_time
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same and alive else None


class Process:
    """Starts a process; ``stop`` ends it and everything that it started."""

    def __init__(self, name: str, command: Command, state: StateDir) -> None:
        self.name = name
        self.command = command
        self.log = state.log(name)
        self._record = state.run / f"{name}.json"
        self._popen = self._spawn(state)
        ProcessIdentity.of(self._popen.pid).write(self._record)

    def _spawn(self, state: StateDir) -> subprocess.Popen[bytes]:
        rotate(self.log)
        own_mark = {STATE_VARIABLE: str(state.root)}
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self.command.arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.command.directory,
                env={**os.environ, **self.command.environment, **own_mark},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return the process id, which is also the id of its session."""
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        return self._popen.poll()

    def stop(self) -> None:
        """Ask the process to stop, wait, then kill it and whatever it left running."""
        if self.exit_code() is None:
            self._popen.send_signal(self.command.stop_signal)
            try:
                self._popen.wait(self.command.patience)
            except subprocess.TimeoutExpired:
                kill(descendants(self.pid))
                self._popen.kill()
                self._popen.wait()
            else:
                self._keep_archive()
        self.sweep()

    def _keep_archive(self) -> None:
        if self.command.archive is not None:
            self.command.archive.settle()

    def sweep(self) -> None:
        """After the end of the process, kill what outlived it, such as the JVM of a killed job."""
        kill(session(self.pid))
        if self.command.archive is not None:
            self.command.archive.give_up()
        self._record.unlink(missing_ok=True)

    def failure(self, what: str) -> CdcError:
        """Return the error SERVER_FAILED for this process, with the end of its log."""
        return CdcError(
            ErrorKind.SERVER_FAILED,
            f"{self.name} {what}",
            detail=last_lines(self.log),
            remedy=f"see the full log: {self.log}",
        )


def descendants(pid: int) -> list[psutil.Process]:
    """Return the children of the process, recursively; empty if it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def session(leader: int) -> list[psutil.Process]:
    """Return the processes of the session that ``leader`` started, even if it is gone itself."""
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue
    return members


def kill(processes: list[psutil.Process], seconds: float = 10) -> None:
    """Send SIGKILL to those that still run, and wait until they are gone."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=seconds)


def last_lines(log: Path, count: int = 12, *, after: int = 0) -> str:
    """Return the last ``count`` lines of a log that can explain a failure.

    Java's stack frames are left out, because they displace the line with the cause, and so are the
    statements of Postgres sessions. The first ``after`` bytes are skipped: an earlier process
    wrote them.
    """
    try:
        with log.open("rb") as content:
            content.seek(max(after, log.stat().st_size - _TAIL_BYTES))
            text = content.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    skipped = (_FRAME, _OF_A_SESSION)
    lines = [line for line in text.splitlines() if not any(p.match(line) for p in skipped)]
    lines = [line for line in lines if line.strip()]
    return "\n".join(lines[-count:])
