"""Requests to the job: files that ask it to stop its cut at a place somebody wants to look at.

The one who asks writes ``<state_dir>/requests/<id>.json`` and removes it afterwards. While an
unexpired request has no bound, the job publishes no cut; with a bound it stops its cut at the
last END marker at or before the bound, until that cut is published. The expiry makes sure that
a reader that was killed cannot hold the job for ever.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


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
    target = _file(folder, request.id)
    # Not *.json: a job that lists the folder now must not see half a file.
    partial = folder / f".{request.id}.{os.getpid()}.partial"
    partial.write_text(json.dumps(asdict(request)))
    partial.replace(target)


def pending(folder: Path, now: float) -> list[Request]:
    """The unexpired requests, by id; files that are none are passed over."""
    if not folder.is_dir():
        return []
    found = (_read(path) for path in sorted(folder.glob("*.json")))
    return [request for request in found if request is not None and request.expires_at > now]


def remove(folder: Path, request_id: str) -> None:
    """Take the request back; nothing happens where it is gone already."""
    _file(folder, request_id).unlink(missing_ok=True)


def remove_expired(folder: Path, now: float) -> None:
    """Take away what readers that were killed left behind."""
    if folder.is_dir():
        for path in folder.glob("*.json"):
            request = _read(path)
            if request is not None and request.expires_at <= now:
                path.unlink(missing_ok=True)


def _file(folder: Path, request_id: str) -> Path:
    if not request_id.replace("-", "").isalnum():
        message = f"{request_id!r} is not the id of a request"
        raise ValueError(message)
    return folder / f"{request_id}.json"


def _read(path: Path) -> Request | None:
    try:
        raw = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None  # removed meanwhile, or not ours
    return _parse(raw) if isinstance(raw, dict) else None


def _parse(raw: Mapping[str, object]) -> Request | None:
    request_id, expires_at, bound = raw.get("id"), raw.get("expires_at"), raw.get("bound")
    if not isinstance(request_id, str) or not isinstance(expires_at, int | float):
        return None
    if bound is not None and not isinstance(bound, int):
        return None
    return Request(id=request_id, expires_at=float(expires_at), bound=bound)
