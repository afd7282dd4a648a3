"""Runs the job as a supervised process."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdc.errors import POLICY, ErrorKind
from cdc.stack.process.process import Command, ProcessIdentity
from cdc.state.directory import StateDir, read_json

_FINAL = (
    ErrorKind.CONFIG,
    ErrorKind.PREREQUISITE,
    ErrorKind.SOURCE_NOT_READY,
    ErrorKind.CONFLICT,
    ErrorKind.CHAIN_BROKEN,
)

FINAL_EXIT_CODES = frozenset(POLICY[kind].exit_code for kind in _FINAL)
"""Exit codes after which a restart would end the same way, so that a person has to act."""


@dataclass(frozen=True, slots=True)
class JobProcess:
    """Runs ``wal2lake run``; ready when its state file says ``applying``."""

    state: StateDir
    config_path: Path
    name: str = "job"

    @property
    def _turn(self) -> Path:
        """Return the file that lets the job go on from its Spark session to the servers."""
        return self.state.run / "job.turn"

    def hold_back(self) -> None:
        """Let the next process start no more than its Spark session, until ``let_run``."""
        self._turn.unlink(missing_ok=True)

    def let_run(self) -> None:
        """Let the job use the servers and the connector; a restarted one does at once."""
        self._turn.touch()

    def prepare(self) -> None:
        """Do nothing: the job creates its own directories."""

    def command(self) -> Command:
        """Return the command line of ``wal2lake run``."""
        options = ("--config", str(self.config_path), "--turn", str(self._turn))
        return Command(
            arguments=(sys.executable, "-m", "cdc", "run", *options),
            directory=self.state.root,
            stop_seconds=60,  # it finishes its current batch first
        )

    def is_ready(self) -> bool:
        """Return whether this process has begun to apply."""
        return self._state().get("state") == "applying"

    def progress(self) -> object:
        """Return how many steps of its start the job has done, None if it has reported none."""
        return self._state().get("steps")

    def _state(self) -> Mapping[str, object]:
        """Return the job's state file if this process wrote it, else an empty mapping."""
        written = read_json(self.state.job_file) or {}
        running = ProcessIdentity.read(self.state.run / f"{self.name}.json")
        return written if running is not None and written.get("pid") == running.pid else {}
