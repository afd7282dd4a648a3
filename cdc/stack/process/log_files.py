"""The log files of the state directory: bounded while they are written, and the last crash kept.

A process holds the file that it writes to, so the file cannot be renamed under it: it is copied
and emptied. All append, so what is written next begins the emptied file. A line that comes in the
instant between is lost; nothing reads a log to decide anything.
"""

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cdc.observe.defects import told, traceback_of
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of a log file; one older of the same size is kept beside it, so a process has twice that."""
_CRASH: Final = "supervisor.crash"
_TAIL_BYTES: Final = 64 * 1024


def rotate(log: Path) -> None:
    """Where it has grown past ``MOST_BYTES``, keep the last of them aside and go on empty.

    On a full disk the older copy is given up first; where even then there is no room, so is what
    the log holds.
    """
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size <= MOST_BYTES:
        return
    older = _older(log)
    older.unlink(missing_ok=True)
    with suppress(OSError):
        _copy_end(log, older)
    os.truncate(log, 0)


def rotate_all(state: StateDir) -> None:
    """Of all processes, also those that have ended."""
    for log in state.logs.glob("*.log"):
        rotate(log)


def _older(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")


def _copy_end(log: Path, to: Path) -> None:
    """The last ``MOST_BYTES``, from the beginning of a line."""
    with log.open("rb") as source, to.open("wb") as target:
        source.seek(-MOST_BYTES, os.SEEK_END)
        source.readline()
        shutil.copyfileobj(source, target)


def crash_file(state: StateDir) -> Path:
    """Where the last crash of a supervisor is told; it outlives every later start."""
    return state.log(_CRASH)


def keep_crash(state: StateDir, error: BaseException) -> None:
    """Tell of the defect that ends the supervisor, where the next start does not remove it."""
    _keep(state, told(error), traceback_of(error))


def keep_silent_end(state: StateDir, last_event: str) -> None:
    """Tell of a supervisor that was killed: the end of its log is all that there is."""
    what = f"it ended without a word, killed or with the machine; it had said last: {last_event}"
    _keep(state, what, _end_of(state.log("supervisor")))


def last_crash(state: StateDir) -> str:
    """When, what, and where it is told; empty where none has."""
    try:
        with crash_file(state).open() as told_of:
            first = told_of.readline().strip()
    except OSError:
        return ""
    return f"{first}; see {crash_file(state)}" if first else ""


def _keep(state: StateDir, what: str, whole: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):  # a full disk: the report says so, and it was not a crash
        write_private(crash_file(state), f"{now} {what}\n{whole}\n")


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as content:
            content.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return content.read().decode(errors="replace")
    except OSError:
        return ""
