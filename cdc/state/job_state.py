"""What the job says of itself in the state directory."""

import json
import os
import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cdc.state.atomic_file import write_shared

RELOADING: Final = "reloading"
"""It applies, and takes another configuration over as soon as a running operation has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Written by the job, read by ``up`` and ``status``."""

    pid: int
    state: str  # starting, applying, reloading, stopped
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
    write_shared(path(state_dir), json.dumps(asdict(state)))


@dataclass(slots=True)
class Told:
    """What the job says of itself in its state file; several threads may tell of it."""

    state_dir: Path
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: str = ""
    steps: int = 0
    alarm: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def enter(self, state: str) -> None:
        with self._lock:
            self.state = state
            self._write()

    def step(self) -> None:
        """The start came further."""
        with self._lock:
            self.steps += 1
            self._write()

    def hear(self, alarm: str) -> None:
        """What keeps cuts from being published; nothing, where nothing does."""
        with self._lock:
            if alarm != self.alarm:
                self.alarm = alarm
                self._write()

    def _write(self) -> None:
        said = JobState.of_this_process(self.state, self.started_at, self.steps, self.alarm)
        write(self.state_dir, said)
