"""Keeps the requests to the job: files that ask it to end a cut at a given LSN.

A reader writes ``<state_dir>/requests/<id>.json`` and removes it afterwards. While an unexpired
request has no bound, the job publishes no cut. Once it has a bound, the job ends its cut at the
last END marker at or before the bound, until that cut is published. The request of a killed reader
stops counting at once, because its lock is released with the process. The expiry is for a reader
that hangs; cdc/state/request_reader.py also guards against clocks that jump.
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
from cdc.state.untrusted_json import read_object, read_or_none

MOST_HOLD_SECONDS: Final = 90.0
"""Longest time for which a request without a bound keeps cuts from being published."""
_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_LSNS: Final = 1 << 63
_MOST_BYTES: Final = 4096
_PASSING: Final = {errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A reader waits for a cut; ``bound`` is an LSN, None while it is not known yet."""

    id: str
    expires_at: float  # seconds since 1970
    bound: int | None = None


def directory(state_dir: Path) -> Path:
    """Return the directory of the requests."""
    return state_dir / "requests"


def write(folder: Path, request: Request) -> None:
    """Write the request in one step, replacing one of the same id."""
    folder.mkdir(parents=True, exist_ok=True)
    write_shared(_file(folder, request.id), json.dumps(asdict(request)))


@contextmanager
def alive(folder: Path, request_id: str) -> Iterator[None]:
    """Let requests of this id count only while the block and this process last."""
    lock = _lock_of(_file(folder, request_id))
    with hold(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def pending(folder: Path, now: float) -> list[Request]:
    """Return the unexpired requests, by id; invalid files are ignored.

    ``now`` is in seconds since 1970. Requests whose process has ended are left out.
    """
    return [
        request
        for path in files(folder)
        if (request := read(path)) is not None
        and request.expires_at > now
        and not _is_abandoned(path)
    ]


def files(folder: Path) -> list[Path]:
    """Return the files that are named like requests, sorted by name."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []


def read(path: Path) -> Request | None:
    """Return the request in the file; None if it is gone or not a request of this name."""
    raw = read_or_none(path, _MOST_BYTES)
    return _parse(raw, path.stem) if raw is not None else None


def is_invalid(path: Path) -> bool:
    """Return whether the file is not a request and will not become one.

    False if that cannot be decided now, such as without free file handles.
    """
    try:
        return _parse(read_object(path, _MOST_BYTES), path.stem) is None
    except ValueError:
        return True
    except OSError as error:
        return error.errno not in _PASSING


def remove(folder: Path, request_id: str) -> None:
    """Remove the request, if it is still there."""
    _file(folder, request_id).unlink(missing_ok=True)


def remove_expired(folder: Path, now: float) -> None:
    """Delete expired requests, and those of readers that were killed."""
    for path in files(folder):
        request = read(path)
        if request is not None and (request.expires_at <= now or _is_abandoned(path)):
            _delete(path)
            _delete(_lock_of(path))
    for lock in folder.glob("*.alive"):
        if not lock.with_suffix(".json").exists() and is_free(lock):
            _delete(lock)


def _delete(path: Path) -> None:
    with suppress(OSError):  # not ours, or not a file: no reason to fail
        path.unlink(missing_ok=True)


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".alive")


def _is_abandoned(path: Path) -> bool:
    """Return whether the requesting process has ended; False if there is no lock to tell."""
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
    except OverflowError:  # an integer larger than any float
        return None
