"""Bounds the log files of the state directory while they are written, and keeps the last crash.

A process keeps its log file open, so the file cannot be renamed: it is copied and truncated. All
processes append, so the next line starts the truncated file. A line written between the copy and
the truncation is lost, which is harmless: no decision is made by reading a log.
"""

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cdc.observe.defects import error_text, traceback_of
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir

MOST_BYTES: Final = 16 * 1024 * 1024
"""Largest size of a log file; one older copy is kept, so a process has twice this at most."""
_CRASH: Final = "supervisor.crash"
_TAIL_BYTES: Final = 64 * 1024


def rotate(log: Path) -> None:
    """If the log has grown past ``MOST_BYTES``, copy its end to ``<name>.1`` and truncate it.

    The previous copy is deleted first. If the disk is too full even then, the log's content is
    dropped without a copy.
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
    """Rotate the logs of all processes, including those that have ended."""
    for log in state.logs.glob("*.log"):
        rotate(log)


def _older(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")


def _copy_end(log: Path, to: Path) -> None:
    """Copy the last ``MOST_BYTES``, starting at the beginning of a line."""
    with log.open("rb") as source, to.open("wb") as target:
        source.seek(-MOST_BYTES, os.SEEK_END)
        source.readline()
        shutil.copyfileobj(source, target)


def crash_file(state: StateDir) -> Path:
    """Return the file that describes the last crash of a supervisor; later starts keep it."""
    return state.log(_CRASH)


def keep_crash(state: StateDir, error: BaseException) -> None:
    """Record the defect that ends the supervisor in ``crash_file``."""
    _keep(state, error_text(error), traceback_of(error))


def keep_silent_end(state: StateDir, last_event: str) -> None:
    """Record that a supervisor was killed, with the end of its log: nothing else is known."""
    what = f"it was killed, or the machine went down; its last event was: {last_event}"
    _keep(state, what, _end_of(state.log("supervisor")))


def last_crash(state: StateDir) -> str:
    """Return when the last crash was, what it was, and its file; empty if there was none."""
    try:
        with crash_file(state).open() as content:
            first = content.readline().strip()
    except OSError:
        return ""
    return f"{first}; see {crash_file(state)}" if first else ""


def _keep(state: StateDir, what: str, whole: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):  # a full disk: reported elsewhere, and not a crash
        write_private(crash_file(state), f"{now} {what}\n{whole}\n")


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as content:
            content.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return content.read().decode(errors="replace")
    except OSError:
        return ""
