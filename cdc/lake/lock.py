"""File locks that keep a second job away from a state directory and a lake."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.layout import control_path, is_local


@contextmanager
def alone(config: Config) -> Iterator[None]:
    """Hold the locks of the state directory and of the lake for the length of the context.

    Two jobs would land every event twice, each by its own state. The operating system releases
    the locks when the process ends, however it ends. A lake on an object store has no lock:
    there the operator has to make sure that only one state directory, and so one job, uses it.

    Raises CONFLICT while another process holds one of the locks.
    """
    with ExitStack() as locks:
        what = f"running with the state directory {config.state_dir}"
        locks.enter_context(_locked(config.state_dir / "job.lock", what))
        if is_local(config.lake.path):
            lock = Path(control_path(config)) / "job.lock"
            locks.enter_context(_locked(lock, f"writing to the lake {config.lake.path}"))
        yield


@contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"another job is {what}",
                reason=Reason.SECOND_JOB,
                remedy="stop it with wal2lake down, or give this job its own state_dir and lake",
            ) from None
        yield
