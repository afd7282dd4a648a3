"""Holds old versions of a lake for a work that reads them for longer than they are kept.

A hold is a file in the lake that names a time: no version is cleaned that was the newest then or
later, in any table. So a verification, a replay or a query may take as long as it needs, in any
process. A hold counts while its file is renewed; that of a process that died ends by itself.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import structlog

from cdc.events.names import CONTROL_DIRECTORY
from cdc.lake.layout import is_local

FOLDER: Final = "held"
RENEWED_SECONDS: Final = 20.0
DEAD_SECONDS: Final = 600.0
"""After so long without renewal a hold is void."""
logger = structlog.get_logger(__name__)


@contextmanager
def held(lake: str, since: float | None = None) -> Iterator[None]:
    """Keep all versions of the lake's tables that were the newest at ``since`` or later.

    ``since`` is in seconds since 1970, by default now; it has to lie within the time that versions
    are kept anyway. Where no file can be written, as by a reader without permission or on an object
    store, versions are kept for that time only.
    """
    file = _begin(lake, time.time() if since is None else since)
    if file is None:
        yield
        return
    over = threading.Event()
    threading.Thread(target=_renew, args=(file, over), name="hold", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        with suppress(OSError):
            file.unlink()


def oldest_hold(lake: str) -> float | None:
    """Return the earliest time that anybody holds, in seconds since 1970; None if nobody does.

    Deletes the files of holds that are void.
    """
    holds = []
    with suppress(FileNotFoundError):
        for file in (Path(lake) / CONTROL_DIRECTORY / FOLDER).iterdir():
            with suppress(FileNotFoundError):
                if time.time() - file.stat().st_mtime > DEAD_SECONDS:
                    file.unlink()
                else:
                    holds.append(_since(file))
    return min(holds, default=None)


def _since(file: Path) -> float:
    try:
        return float(file.name.partition("-")[0])
    except ValueError:
        return 0.0  # somebody meant something by it


def _begin(lake: str, since: float) -> Path | None:
    if not is_local(lake):
        return None
    folder = Path(lake) / CONTROL_DIRECTORY / FOLDER
    file = folder / f"{since:.3f}-{uuid4()}"
    try:
        folder.mkdir(exist_ok=True)
        file.touch()
    except OSError as error:
        logger.info("old versions are not held", reason=error.strerror)
        return None
    return file


def _renew(file: Path, over: threading.Event) -> None:
    while not over.wait(RENEWED_SECONDS):
        with suppress(OSError):
            os.utime(file)
