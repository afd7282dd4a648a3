"""Keeps the files in ``<state_dir>/operations`` by which operations are requested and followed.

The command that asks writes ``<id>.operation.json``, a command that pauses or cancels writes
``<id>.wish.json``, and the job writes ``<id>.progress.json``. The job keeps the ending in
``<id>.ending.json`` until the lake has recorded it. Every file is replaced atomically. Operations
are added and wishes changed under one lock.
"""

import json
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.state import file_lock
from cdc.state.atomic_file import write_private
from cdc.state.operation import (
    Operation,
    OperationState,
    Progress,
    operation_facts,
    operation_of,
    progress_facts,
    progress_of,
)
from cdc.state.untrusted_json import read_or_none

PAUSE: Final = "pause"
CANCEL: Final = "cancel"
_SUFFIX: Final = ".operation.json"
_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


def directory(state_dir: Path) -> Path:
    """Return the directory of the operations' files."""
    return state_dir / "operations"


def ask(state_dir: Path, operation: Operation) -> None:
    """Ask the job to run the operation.

    Raises CONFLICT if an unfinished operation works on one of its tables.
    """
    with locked(state_dir):
        for other in unfinished(state_dir):
            common = sorted(set(other.tables) & set(operation.tables))
            if common:
                raise _conflict(other, common)
        _write(state_dir, operation.id, "operation", json.dumps(operation_facts(operation)))


def _conflict(other: Operation, common: list[str]) -> CdcError:
    return CdcError(
        ErrorKind.CONFLICT,
        f"operation {other.id} ({other.command}) is not finished with {', '.join(common)}",
        detail=f"asked for by {other.asked_by} at {other.asked_at}",
        remedy=f"wait: wal2lake operations {other.id} --follow; or wal2lake cancel {other.id}",
    )


def all_operations(state_dir: Path, *, without: Container[str] = ()) -> list[Operation]:
    """Return every operation that has a file, oldest first; invalid files are ignored.

    Operations whose id is in ``without`` are left out, and their files are not read.
    """
    paths = directory(state_dir).glob(f"*{_SUFFIX}")
    named = ((path, path.name.removesuffix(_SUFFIX)) for path in paths)
    valid = (_read(path, name) for path, name in named if name not in without)
    return sorted((one for one in valid if one is not None), key=_age)


def _read(path: Path, name: str) -> Operation | None:
    raw = read_or_none(path) if _ID.fullmatch(name) else None
    parsed = operation_of(raw) if raw is not None else None
    return parsed if parsed is not None and parsed.id == name else None


def _age(operation: Operation) -> tuple[str, str]:
    return operation.asked_at, operation.id


def unfinished(state_dir: Path) -> list[Operation]:
    """Return the unfinished operations, oldest first."""
    return [one for one in all_operations(state_dir) if not progress(state_dir, one.id).state.ended]


def operation(state_dir: Path, operation_id: str) -> Operation:
    """Return the operation; raises CONFIG if there is none of this id."""
    asked_for = _read(_file(state_dir, operation_id, "operation"), operation_id)
    if asked_for is None:
        raise unknown_operation(operation_id)
    return asked_for


def progress(state_dir: Path, operation_id: str) -> Progress:
    """Return the progress; its state is WAITING until the job has written a readable file."""
    written = _read_progress(state_dir, operation_id, "progress")
    return written or Progress(id=operation_id, state=OperationState.WAITING)


def _read_progress(state_dir: Path, operation_id: str, kind: str) -> Progress | None:
    raw = read_or_none(_file(state_dir, operation_id, kind))
    parsed = progress_of(raw) if raw is not None else None
    return parsed if parsed is not None and parsed.id == operation_id else None


def write_progress(state_dir: Path, current: Progress) -> None:
    """Replace the progress of an operation; only one thread may write it at a time."""
    _write(state_dir, current.id, "progress", json.dumps(progress_facts(current)))


def write_ending(state_dir: Path, ended: Progress) -> None:
    """Save the ending before it is recorded in the lake; ``progress`` does not show it yet."""
    _write(state_dir, ended.id, "ending", json.dumps(progress_facts(ended)))


def ending(state_dir: Path, operation_id: str) -> Progress | None:
    """Return the saved ending that ``progress`` does not show yet, or None."""
    return _read_progress(state_dir, operation_id, "ending")


def tell_ending(state_dir: Path, operation_id: str) -> None:
    """Make the saved ending the progress, so that everybody sees it."""
    path = _file(state_dir, operation_id, "ending")
    path.replace(_file(state_dir, operation_id, "progress"))


def control_request(state_dir: Path, operation_id: str) -> str:
    """Return what a command has asked of the operation: ``PAUSE``, ``CANCEL``, or ""."""
    raw = read_or_none(_file(state_dir, operation_id, "wish")) or {}
    asked_for = raw.get("wish", "")
    return str(asked_for) if asked_for in (PAUSE, CANCEL) else ""


def request_control(state_dir: Path, operation_id: str, wanted: str) -> None:
    """Replace the wish; an empty one resumes a paused operation.

    An operation that is still waiting is cancelled at once. Raises CONFIG if the operation is
    unknown or has ended, and if it is being cancelled and the wish is another.
    """
    with locked(state_dir):
        operation(state_dir, operation_id)
        state = progress(state_dir, operation_id).state
        if state.ended:
            raise CdcError(
                ErrorKind.CONFIG,
                f"operation {operation_id} has ended: it is {state.value}",
                remedy=f"run wal2lake operations {operation_id} to see how it ended",
            )
        if control_request(state_dir, operation_id) == CANCEL and wanted != CANCEL:
            raise CdcError(
                ErrorKind.CONFIG,
                f"operation {operation_id} is being cancelled",
                remedy="wait until it has ended, then ask for it again",
            )
        _write(state_dir, operation_id, "wish", json.dumps({"wish": wanted}))
        if wanted == CANCEL and state is OperationState.WAITING:
            write_progress(state_dir, _cancelled(operation_id))


def cancellation(operation_id: str) -> CdcError:
    """Return the error CANCELLED with which a cancelled operation ends."""
    return CdcError(
        ErrorKind.CANCELLED,
        f"operation {operation_id} was cancelled",
        remedy="ask for it again if it is still wanted",
    )


def _cancelled(operation_id: str) -> Progress:
    error, ended_at = cancellation(operation_id), datetime.now(UTC).isoformat()
    return Progress(
        id=operation_id,
        state=OperationState.CANCELLED,
        updated_at=ended_at,
        ended_at=ended_at,
        reason=error.message,
        remedy=error.remedy,
        error_kind=error.kind.value,
    )


def remove(state_dir: Path, operation_id: str) -> None:
    """Delete the files of an operation that has ended."""
    for kind in (
        "operation",
        "wish",
        "ending",
        "progress",
    ):  # this one first: without it there is no operation
        _file(state_dir, operation_id, kind).unlink(missing_ok=True)


def unknown_operation(operation_id: str) -> CdcError:
    """Return the error CONFIG for an id of which there is no operation."""
    return CdcError(
        ErrorKind.CONFIG,
        f"there is no operation {operation_id}",
        remedy="run wal2lake operations to list them",
    )


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Hold the lock of the directory; it is released when the process ends, however it does."""
    with file_lock.hold(directory(state_dir) / "lock"):
        yield


def _write(state_dir: Path, operation_id: str, kind: str, text: str) -> None:
    path = _file(state_dir, operation_id, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, text)


def _file(state_dir: Path, operation_id: str, kind: str) -> Path:
    if not _ID.fullmatch(operation_id):
        raise unknown_operation(operation_id)
    return directory(state_dir) / f"{operation_id}.{kind}.json"
