"""What the job says of itself in the state directory, and the lock that keeps it alone."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from cdc.errors import CdcError, ErrorKind


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Written by the job, read by ``up`` and ``status``."""

    pid: int
    state: str  # starting, applying, stopped
    started_at: str  # ISO 8601, UTC
    steps: int = 0  # of the start that are done: tables opened, batches replayed
    alarm: str = ""  # what keeps cuts from being published and does not go away by itself

    @classmethod
    def of_this_process(
        cls, state: str, started_at: datetime, steps: int = 0, alarm: str = ""
    ) -> "JobState":
        at = started_at.isoformat()
        return cls(pid=os.getpid(), state=state, started_at=at, steps=steps, alarm=alarm)


def path(state_dir: Path) -> Path:
    return state_dir / "job.json"


def write(state_dir: Path, state: JobState) -> None:
    """Replace the job's state in one step."""
    partial = state_dir / f".job.{os.getpid()}.partial"
    partial.write_text(json.dumps(asdict(state)))
    partial.replace(path(state_dir))


@contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """Hold the lock of the state directory; raises CONFLICT while another job holds it.

    The lock goes with the process, however it ends.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "job.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"another job is running with the state directory {state_dir}",
                remedy="stop it with wal2lake down, or give this one its own state_dir and lake",
            ) from None
        yield
