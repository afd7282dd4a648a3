"""Holds old versions of a lake for a work that reads them for longer than they are kept.

A hold is a file in the lake that names a time: no version is cleaned that was the newest then or
later, in any table. So a verification, a replay or a query may take as long as it needs, in any
process. A hold counts while its file is renewed; that of a process that died ends by itself, and
that of a job when the next one begins.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event
from typing import Final
from uuid import uuid4

import structlog

from cdc.events.names import CONTROL_DIRECTORY
from cdc.lake.files.file_store import FileStore
from cdc.lake.files.store_of import store_of
from cdc.waiting import beside

FOLDER: Final = "held"
RENEWED_SECONDS: Final = 20.0
DEAD_SECONDS: Final = 600.0
"""After so long without renewal a hold is void."""
_BY_JOB: Final = "-job-"
logger = structlog.get_logger(__name__)


@contextmanager
def held(lake: str, since: float | None = None, *, by_job: bool = False) -> Iterator[None]:
    """Keep all versions of the lake's tables that were the newest at ``since`` or later.

    ``since`` is in seconds since 1970, by default now; it has to lie within the time that versions
    are kept anyway. ``by_job`` is for the job alone: see ``end_holds_of_job``. Where no file can be
    written, as by a reader without permission, versions are kept for that time only.
    """
    store = _store(lake)
    name = _begin(store, time.time() if since is None else since, _BY_JOB if by_job else "-")
    if name is None:
        yield
        return
    try:
        with beside(partial(_renew, store, name), "hold"):
            yield
    finally:
        with suppress(OSError):
            store.delete(name)


def oldest_hold(lake: str) -> float | None:
    """Return the earliest time that anybody holds, in seconds since 1970; None if nobody does.

    Deletes the files of holds that are void.
    """
    store, holds = _store(lake), []
    with suppress(FileNotFoundError):
        for name, renewed in store.times(FOLDER).items():
            if time.time() - renewed > DEAD_SECONDS:
                store.delete(f"{FOLDER}/{name}")
            else:
                holds.append(_since(name))
    return min(holds, default=None)


def end_holds_of_job(lake: str) -> None:
    """End what a job has held that is no more; only for a job that has the lake for itself."""
    store = _store(lake)
    with suppress(FileNotFoundError):
        for name in store.times(FOLDER):
            if _BY_JOB in name:
                store.delete(f"{FOLDER}/{name}")


def _store(lake: str) -> FileStore:
    return store_of(f"{lake}/{CONTROL_DIRECTORY}")


def _since(name: str) -> float:
    try:
        return float(name.partition("-")[0])
    except ValueError:
        return 0.0  # somebody meant something by it


def _begin(store: FileStore, since: float, by: str) -> str | None:
    """Return the name of the hold's file; None if none can be written."""
    name = f"{FOLDER}/{since:.3f}{by}{uuid4()}"
    try:
        store.make_folder(FOLDER, parents=False)
        store.touch(name)
    except OSError as error:
        logger.info("old versions are not held", reason=error.strerror or str(error))
        return None
    return name


def _renew(store: FileStore, name: str, over: Event) -> None:
    while not over.wait(RENEWED_SECONDS):
        with suppress(OSError):
            store.touch(name)
