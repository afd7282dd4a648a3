"""The job's state as it reports it in the state directory."""

import json
import os
import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

RELOADING: Final = "reloading"
"""The job applies, and loads a new configuration once the running operation has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The content of the state file, which the job writes and ``up`` and ``status`` read."""

    pid: int
    state: str  # starting, applying, reloading, stopped
    started_at: str  # ISO 8601, UTC
    steps: int = 0  # finished steps of the start: tables opened, batches replayed
    alarm: str = ""  # what keeps cuts from being published and does not go away by itself

    @classmethod
    def of_this_process(
        cls, state: str, started_at: datetime, steps: int = 0, alarm: str = ""
    ) -> "JobState":
        """Return the state with the id of this process."""
        at = started_at.isoformat()
        return cls(pid=os.getpid(), state=state, started_at=at, steps=steps, alarm=alarm)


def path(state_dir: Path) -> Path:
    """Return the job's state file."""
    return state_dir / "job.json"


def write(state_dir: Path, state: JobState) -> None:
    """Replace the job's state file in one step."""
    partial = state_dir / f".job.{os.getpid()}.partial"
    partial.write_text(json.dumps(asdict(state)))
    partial.replace(path(state_dir))


@dataclass(slots=True)
class Told:
    """Keeps the job's state file up to date; safe to use from several threads."""

    state_dir: Path
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: str = ""
    steps: int = 0
    alarm: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def enter(self, state: str) -> None:
        """Record the state: ``starting``, ``applying``, ``reloading`` or ``stopped``."""
        with self._lock:
            self.state = state
            self._write()

    def step(self) -> None:
        """Record one more finished step of the start."""
        with self._lock:
            self.steps += 1
            self._write()

    def hear(self, alarm: str) -> None:
        """Record what keeps cuts from being published, "" if nothing does."""
        with self._lock:
            if alarm != self.alarm:
                self.alarm = alarm
                self._write()

    def _write(self) -> None:
        state = JobState.of_this_process(self.state, self.started_at, self.steps, self.alarm)
        write(self.state_dir, state)
