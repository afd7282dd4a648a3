"""Keeps a second job away from a state directory and a lake, by locks."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.files.fence import fenced
from cdc.lake.layout import control_path, is_local
from cdc.state import file_lock

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def only_job(config: Config, held_for: Callable[[float], None] = lambda _: None) -> Iterator[None]:
    """Hold the locks of the state directory and of the lake for the length of the context.

    Two jobs would land every event twice, each by its own state. The operating system releases
    file locks when the process ends, however it ends. A lake in an object store has a lease
    (cdc/lake/files/lease.py); ``held_for`` is told for how many seconds from now it is held.

    Raises CONFLICT while another process holds one of the locks.
    """
    with ExitStack() as locks:
        what = f"running with the state directory {config.state_dir}"
        own = config.state_dir / "job.lock"
        locks.enter_context(file_lock.hold(own, _second_job(what)))
        lock, what = f"{control_path(config)}/job.lock", f"writing to the lake {config.lake.path}"
        if is_local(config.lake.path):
            locks.enter_context(file_lock.hold(Path(lock), _second_job(what)))
        else:
            locks.enter_context(_leased(config, lock, own, what, held_for))
        yield


@contextmanager
def _leased(
    config: Config, lock: str, own: Path, what: str, held_for: Callable[[float], None]
) -> Iterator[None]:
    from cdc.lake.files.lease import Holder, Lease  # noqa: PLC0415 - as in store_of

    name = f"process {os.getpid()} on {socket.gethostname()} with state directory {own.parent}"
    holder = Holder(name=name, place=_place(own), run=uuid4().hex)
    lease = Lease(lock, holder, renewed=held_for)
    with lease.held(partial(_second_job, what)), fenced(config.lake.path, lease.check):
        yield


def _place(locked: Path) -> str:
    """Return what names a file on this machine, as long as it runs.

    Whoever holds the lock of the file knows that its last holder is dead.
    """
    try:
        found = locked.stat()
        return f"{_BOOT.read_text().strip()} {found.st_dev} {found.st_ino}"
    except OSError:
        return ""


def _second_job(what: str, holder: str = "") -> CdcError:
    return CdcError(
        ErrorKind.CONFLICT,
        f"another job is {what}",
        detail=holder,
        reason=Reason.SECOND_JOB,
        remedy="stop it with wal2lake down, or give this job its own state_dir and lake",
    )
