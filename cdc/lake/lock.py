"""File locks that keep a second job away from a state directory and a lake."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.layout import control_path, is_local
from cdc.state import file_lock


@contextmanager
def only_job(config: Config) -> Iterator[None]:
    """Hold the locks of the state directory and of the lake for the length of the context.

    Two jobs would land every event twice, each by its own state. The operating system releases
    the locks when the process ends, however it ends. A lake on an object store has no lock:
    there the operator has to make sure that only one state directory, and so one job, uses it.

    Raises CONFLICT while another process holds one of the locks.
    """
    with ExitStack() as locks:
        what = f"running with the state directory {config.state_dir}"
        locks.enter_context(file_lock.hold(config.state_dir / "job.lock", _second_job(what)))
        if is_local(config.lake.path):
            lock = Path(control_path(config)) / "job.lock"
            what = f"writing to the lake {config.lake.path}"
            locks.enter_context(file_lock.hold(lock, _second_job(what)))
        yield


def _second_job(what: str) -> CdcError:
    return CdcError(
        ErrorKind.CONFLICT,
        f"another job is {what}",
        reason=Reason.SECOND_JOB,
        remedy="stop it with wal2lake down, or give this job its own state_dir and lake",
    )
