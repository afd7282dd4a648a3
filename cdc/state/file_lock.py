"""Takes locks on files, held by one process at a time and given up with it, however it ends.

They are locks of the kernel (``flock``); docs/decisions/0006-dependencies.md says why no library
takes them. ``hold`` leaves the lock's file in its place, because a waiter may have it open.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdc.errors import CdcError


@contextmanager
def hold(path: Path, refusal: CdcError | None = None) -> Iterator[None]:
    """Hold the lock for the length of the block; its folder is made where there is none.

    While another process holds it, raise ``refusal``, or wait for it where none is given.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0))
        except BlockingIOError:
            if refusal is None:
                raise
            raise refusal from None
        yield


def taken(path: Path) -> int | None:
    """Take the lock without waiting; return the handle that keeps it, or None if it is not free.

    It is given up when the handle is closed, at the latest with the process. Raises OSError if the
    lock's file, or its folder, cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def is_free(path: Path) -> bool:
    """Return whether the lock's file is there and nobody holds it.

    The file may be anybody's: it is not written to, and opening it never waits.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
