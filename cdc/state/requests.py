"""Requests to the job: files that ask it to stop its cut at a place somebody wants to look at.

The one who asks writes ``<state_dir>/requests/<id>.json`` and removes it afterwards. While an
unexpired request has no bound, the job publishes no cut; with a bound it stops its cut at the
last END marker at or before the bound, until that cut is published. A reader that was killed
holds the job no longer than its lock is there, which is given up with the process; the expiry is
for one that stands still (cdc/state/holds.py: and for clocks that jump).
"""

import errno
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cdc.state.atomic_file import write_shared
from cdc.state.file_lock import hold, is_free
from cdc.state.foreign_files import given, opened

MOST_HOLD_SECONDS: Final = 90.0
"""So long may a request without a bound keep cuts from being published."""
_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_LSNS: Final = 1 << 63
_MOST_BYTES: Final = 4096
_PASSING: Final = {errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Somebody waits for a cut; ``bound`` is an LSN, or None while it is not known yet."""

    id: str
    expires_at: float  # seconds since 1970
    bound: int | None = None


def directory(state_dir: Path) -> Path:
    return state_dir / "requests"


def write(folder: Path, request: Request) -> None:
    """Put the request, or replace the one of the same id, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    write_shared(_file(folder, request.id), json.dumps(asdict(request)))


@contextmanager
def alive(folder: Path, request_id: str) -> Iterator[None]:
    """Requests of this id count only as long as the block, or else this process, lasts."""
    lock = _lock_of(_file(folder, request_id))
    with hold(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def pending(folder: Path, now: float) -> list[Request]:
    """The unexpired requests, by id; files that are none are passed over."""
    return [
        request
        for path in files(folder)
        if (request := read(path)) is not None
        and request.expires_at > now
        and not _is_abandoned(path)
    ]


def files(folder: Path) -> list[Path]:
    """What is called as a request is, by name."""
    try:
        return sorted(folder.glob("*.json"))
    except OSError:
        return []


def read(path: Path) -> Request | None:
    """None where it is gone, or no request of this name."""
    raw = given(path, _MOST_BYTES)
    return _parse(raw, path.stem) if raw is not None else None


def is_none(path: Path) -> bool:
    """Whether it is no request and will be none; not where it cannot be told now."""
    try:
        return _parse(opened(path, _MOST_BYTES), path.stem) is None
    except ValueError:
        return True
    except OSError as error:
        return error.errno not in _PASSING


def remove(folder: Path, request_id: str) -> None:
    """Take the request back; nothing happens where it is gone already."""
    _file(folder, request_id).unlink(missing_ok=True)


def remove_expired(folder: Path, now: float) -> None:
    """Take away what readers that were killed left behind."""
    for path in files(folder):
        request = read(path)
        if request is not None and (request.expires_at <= now or _is_abandoned(path)):
            _take_away(path)
            _take_away(_lock_of(path))
    for lock in folder.glob("*.alive"):
        if not lock.with_suffix(".json").exists() and is_free(lock):
            _take_away(lock)


def _take_away(path: Path) -> None:
    with suppress(OSError):  # of somebody else, or no file: it is not ours to end by
        path.unlink(missing_ok=True)


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".alive")


def _is_abandoned(path: Path) -> bool:
    """Whether the process that asked has ended; one that has no lock may be of any kind."""
    return is_free(_lock_of(path))


def _file(folder: Path, request_id: str) -> Path:
    if not _ID.fullmatch(request_id):
        message = f"{request_id!r} is not the id of a request"
        raise ValueError(message)
    return folder / f"{request_id}.json"


def _parse(raw: Mapping[str, object], name: str) -> Request | None:
    request_id, expires_at, bound = raw.get("id"), raw.get("expires_at"), raw.get("bound")
    if not isinstance(request_id, str) or not _ID.fullmatch(request_id) or request_id != name:
        return None
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | float):
        return None
    if bound is not None and (type(bound) is not int or not 0 <= bound < _LSNS):
        return None
    try:
        return Request(id=request_id, expires_at=float(expires_at), bound=bound)
    except OverflowError:  # a whole number beyond every float
        return None
