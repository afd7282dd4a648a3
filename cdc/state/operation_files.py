"""The files by which operations are asked for and followed: ``<state_dir>/operations``.

``<id>.operation.json`` is written by who asks, ``<id>.wish.json`` by who pauses or cancels,
``<id>.progress.json`` by the job; how it ended is ``<id>.ending.json`` until it is recorded. Each
is replaced by rename, so that a reader or a crash sees the old or the new one. What changes who
owns an operation happens under one lock.
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
from cdc.state.foreign_files import given
from cdc.state.operation import (
    Operation,
    OperationState,
    Progress,
    operation_facts,
    operation_of,
    progress_facts,
    progress_of,
)

PAUSE: Final = "pause"
CANCEL: Final = "cancel"
_SUFFIX: Final = ".operation.json"
_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


def directory(state_dir: Path) -> Path:
    return state_dir / "operations"


def ask(state_dir: Path, operation: Operation) -> None:
    """Ask the job for the operation.

    Raises CONFLICT while an unfinished operation has one of its tables.
    """
    with locked(state_dir):
        for other in asked(state_dir):
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


def everything(state_dir: Path, *, without: Container[str] = ()) -> list[Operation]:
    """Every operation whose file is there, oldest first; files that are none are passed over.

    Those whose id is in ``without`` are left out unread.
    """
    paths = directory(state_dir).glob(f"*{_SUFFIX}")
    named = ((path, path.name.removesuffix(_SUFFIX)) for path in paths)
    found = (_read(path, name) for path, name in named if name not in without)
    return sorted((each for each in found if each is not None), key=_age)


def _read(path: Path, name: str) -> Operation | None:
    raw = given(path) if _ID.fullmatch(name) else None
    found = operation_of(raw) if raw is not None else None
    return found if found is not None and found.id == name else None


def _age(operation: Operation) -> tuple[str, str]:
    return operation.asked_at, operation.id


def asked(state_dir: Path) -> list[Operation]:
    """The unfinished operations, oldest first."""
    return [each for each in everything(state_dir) if not progress(state_dir, each.id).state.ended]


def operation(state_dir: Path, operation_id: str) -> Operation:
    """Raises CONFIG where there is no such operation."""
    found = _read(_file(state_dir, operation_id, "operation"), operation_id)
    if found is None:
        raise unknown(operation_id)
    return found


def progress(state_dir: Path, operation_id: str) -> Progress:
    """How far it is; waiting, as long as the job has written nothing that can be read."""
    found = _told(state_dir, operation_id, "progress")
    return found or Progress(id=operation_id, state=OperationState.WAITING)


def _told(state_dir: Path, operation_id: str, kind: str) -> Progress | None:
    raw = given(_file(state_dir, operation_id, kind))
    found = progress_of(raw) if raw is not None else None
    return found if found is not None and found.id == operation_id else None


def write_progress(state_dir: Path, told: Progress) -> None:
    """Replace what is said of the operation. One process and thread writes it at a time."""
    _write(state_dir, told.id, "progress", json.dumps(progress_facts(told)))


def write_ending(state_dir: Path, ended: Progress) -> None:
    """Keep how it ended, before that is recorded in the lake; nobody is told yet."""
    _write(state_dir, ended.id, "ending", json.dumps(progress_facts(ended)))


def ending(state_dir: Path, operation_id: str) -> Progress | None:
    """How it ended, where nobody was told of it."""
    return _told(state_dir, operation_id, "ending")


def tell_ending(state_dir: Path, operation_id: str) -> None:
    """Make the ending the progress."""
    path = _file(state_dir, operation_id, "ending")
    path.replace(_file(state_dir, operation_id, "progress"))


def wish(state_dir: Path, operation_id: str) -> str:
    """``pause``, ``cancel``, or nothing: what somebody wants of the operation."""
    raw = given(_file(state_dir, operation_id, "wish")) or {}
    found = raw.get("wish", "")
    return str(found) if found in (PAUSE, CANCEL) else ""


def set_wish(state_dir: Path, operation_id: str, wanted: str) -> None:
    """Replace the wish; an empty one lets a paused operation go on.

    An operation that was not begun is cancelled here and now. Raises CONFIG for one that is
    unknown or has ended, and for one that is cancelled already: only its end comes after that.
    """
    with locked(state_dir):
        operation(state_dir, operation_id)
        state = progress(state_dir, operation_id).state
        if state.ended:
            raise CdcError(
                ErrorKind.CONFIG,
                f"operation {operation_id} has ended: it is {state.value}",
                remedy=f"see wal2lake operations {operation_id}",
            )
        if wish(state_dir, operation_id) == CANCEL and wanted != CANCEL:
            raise CdcError(
                ErrorKind.CONFIG,
                f"operation {operation_id} is being cancelled",
                remedy="ask for it again when it has ended",
            )
        _write(state_dir, operation_id, "wish", json.dumps({"wish": wanted}))
        if wanted == CANCEL and state is OperationState.WAITING:
            write_progress(state_dir, _cancelled(operation_id))


def cancellation(operation_id: str) -> CdcError:
    return CdcError(
        ErrorKind.CANCELLED,
        f"operation {operation_id} was cancelled",
        remedy="ask for it again when it is wanted",
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
    """Take away the files of an operation that has ended."""
    for kind in (
        "operation",
        "wish",
        "ending",
        "progress",
    ):  # the operation first: without it there is none
        _file(state_dir, operation_id, kind).unlink(missing_ok=True)


def unknown(operation_id: str) -> CdcError:
    return CdcError(
        ErrorKind.CONFIG,
        f"there is no operation {operation_id}",
        remedy="wal2lake operations lists them",
    )


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Hold the lock of the directory; it goes with the process, however it ends."""
    with file_lock.hold(directory(state_dir) / "lock"):
        yield


def _write(state_dir: Path, operation_id: str, kind: str, text: str) -> None:
    path = _file(state_dir, operation_id, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, text)


def _file(state_dir: Path, operation_id: str, kind: str) -> Path:
    if not _ID.fullmatch(operation_id):
        raise unknown(operation_id)
    return directory(state_dir) / f"{operation_id}.{kind}.json"
