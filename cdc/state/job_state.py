"""Write the job's own state file in the state directory."""

import json
import os
import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cdc.state.atomic_file import write_shared
from cdc.waiting import Every

RELOADING: Final = "reloading"
"""The job applies, and adopts a new configuration as soon as the running operation has ended."""
STEP_SECONDS: Final = 0.5
"""The shortest time between two writings of the file because of steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Holds the content of the state file: the job writes it, ``up`` and ``status`` read it."""

    pid: int
    state: str  # starting, applying, reloading, stopped
    started_at: str  # ISO 8601, UTC
    steps: int = 0  # finished steps of the start: tables opened, batches replayed
    alarm: str = ""  # what blocks publishing and does not go away by itself

    @classmethod
    def of_this_process(
        cls, state: str, started_at: datetime, steps: int = 0, alarm: str = ""
    ) -> "JobState":
        """Return the state of a job that runs in this process."""
        at = started_at.isoformat()
        return cls(pid=os.getpid(), state=state, started_at=at, steps=steps, alarm=alarm)


def path(state_dir: Path) -> Path:
    """Return where the state file is."""
    return state_dir / "job.json"


def write(state_dir: Path, state: JobState) -> None:
    """Replace the state file atomically."""
    write_shared(path(state_dir), json.dumps(asdict(state)))


@dataclass(slots=True)
class JobStateFile:
    """Writes the job's state file; its methods may be called by any thread."""

    state_dir: Path
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: str = ""
    steps: int = 0
    alarm: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _steps_due: Every = field(default_factory=lambda: Every(STEP_SECONDS), repr=False)

    def enter(self, state: str) -> None:
        """Record that the job is in another state; ``JobState.state`` lists them."""
        with self._lock:
            self.state = state
            self._write()

    def step(self) -> None:
        """Record one more finished step of the start; the file may say so a moment later.

        Steps may be many and short, and each writing of the file waits for the disk.
        """
        with self._lock:
            self.steps += 1
            if self._steps_due.is_due():
                self._write()

    def set_alarm(self, alarm: str) -> None:
        """Record what blocks publishing; empty where nothing does."""
        with self._lock:
            if alarm != self.alarm:
                self.alarm = alarm
                self._write()

    def _write(self) -> None:
        state = JobState.of_this_process(self.state, self.started_at, self.steps, self.alarm)
        write(self.state_dir, state)
